"""One Project from the cache of the Milo root, and the engaged plane of its name.

While the list of Projects is not complete there is no observation at all: otherwise a root that
cannot be read would disengage every project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_api_types.conditions import READY
from compute_management_operator.planes import PROJECT
from compute_management_operator.stored_status import find_condition, read_conditions
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.lister import CachedObject
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable

READINESS: Final = "readiness"
"""Index of Projects: `ready` for those with a plane that can be engaged."""
IS_READY: Final = "ready"
SUSPENSION: Final = "suspension"
"""Index of Projects: the status of their condition `Suspended`, where they have one."""
SUSPENDED: Final = "Suspended"  # type of Milo's condition (suspension.md 1)

# The uid of the Project a plane was engaged for; None while no plane of that name is engaged.
FindEngaged: TypeAlias = Callable[[PlaneName], str | None]


@dataclass(frozen=True, slots=True)
class RootProject:
    """A Project that exists."""

    uid: str
    is_ready: bool


@dataclass(frozen=True, slots=True)
class ObservedProject:
    """One Project at one moment."""

    name: str
    project: RootProject | Absent
    engaged_uid: str | None


def observe(key: ObjectKey, caches: Caches, find_engaged: FindEngaged) -> ObservedProject | None:
    """None while the root's list is not complete."""
    project = caches.lister(key.plane, PROJECT).get("", key.name)
    if isinstance(project, Unreadable):
        return None
    engaged = find_engaged(PlaneName(key.name))
    if isinstance(project, Absent):
        return ObservedProject(key.name, project, engaged)
    return ObservedProject(
        key.name, RootProject(project.metadata.uid, is_ready(project.decode())), engaged
    )


def is_project_deleting(caches: Caches, plane: PlaneName) -> bool:
    """Whether the Project of a plane is being deleted; False where no root is engaged."""
    for root in caches.planes(Role.ROOT):
        project = caches.lister(root, PROJECT).get("", plane)
        if isinstance(project, Snapshot) and project.metadata.is_deleting:
            return True
    return False


def observe_suspension(caches: Caches, plane: PlaneName) -> bool | None:
    """Whether the Project of a plane is suspended; None where that is not known.

    A Project that is missing from the list proves nothing: a root that was restored empty, or the
    wrong one, must not start what was stopped.
    """
    for root in caches.planes(Role.ROOT):
        projects = caches.lister(root, PROJECT)
        entry = projects.entry("", plane)
        if entry is None:
            return None
        return {"True": True, "False": False, "": False}.get(read_suspension(entry))
    return False


def is_ready(body: JsonObject) -> bool:
    """Whether a Project is Ready; Milo leaves the condition True while the Project is deleted."""
    conditions = read_conditions(member_object(body, "status"))
    return any(one.type == READY and one.status == "True" for one in conditions)


def index_by_readiness(_: Metadata, body: JsonObject) -> Iterable[str]:
    return (IS_READY,) if is_ready(body) else ()


def index_by_suspension(_: Metadata, body: JsonObject) -> Iterable[str]:
    condition = find_condition(member_object(body, "status"), SUSPENDED)
    return () if condition is None else (condition.status,)


PROJECT_INDEXES: Final[dict[str, IndexFunction]] = {
    READINESS: index_by_readiness,
    SUSPENSION: index_by_suspension,
}


def read_suspension(entry: CachedObject | None) -> str:
    """The status of a Project's condition `Suspended`; "" without one."""
    return "" if entry is None else next(iter(entry.index_values.get(SUSPENSION, ())), "")


def ready_projects(root: PlaneName, caches: Caches) -> frozenset[str]:
    """Names of all Projects that are Ready."""
    entries = caches.lister(root, PROJECT).entries_by_index(READINESS, IS_READY)
    return frozenset(entry.key.name for entry in entries)
