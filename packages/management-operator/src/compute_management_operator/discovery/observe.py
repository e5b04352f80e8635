"""Reads the cache of the Milo root: one Project, and the plane that bears its name here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_api_types.conditions import READY
from compute_management_operator.kinds import PROJECT
from compute_operator_kit.cache import Caches
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.keys import ObjectKey, PlaneName
from compute_operator_kit.objects import Absent, Metadata, Unreadable
from compute_operator_kit.wire import JsonObject, member_list, member_object, member_text

READINESS: Final = "readiness"
"""Index of Projects: `ready` for those whose plane can be engaged."""
IS_READY: Final = "ready"

# The uid of the Project a plane was engaged for; None while no plane of that name is engaged.
FindEngaged: TypeAlias = Callable[[PlaneName], str | None]


@dataclass(frozen=True, slots=True)
class Project:
    """A Project that exists."""

    uid: str
    is_ready: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """One Project at one moment."""

    name: str
    project: Project | Absent
    engaged_uid: str | None


def observe(key: ObjectKey, caches: Caches, find_engaged: FindEngaged) -> Seen | None:
    """None while the root's list cannot be believed: not knowing ends nobody's service."""
    view = caches.view(key.plane, PROJECT)
    found = view.get("", key.name)
    if isinstance(found, Unreadable):
        return None
    engaged = find_engaged(PlaneName(key.name))
    if isinstance(found, Absent):
        return Seen(key.name, found, engaged)
    return Seen(key.name, Project(found.metadata.uid, is_ready(found.decode())), engaged)


def is_ready(body: JsonObject) -> bool:
    """Milo leaves this True while a Project is deleted."""
    conditions = member_list(member_object(body, "status"), "conditions")
    return any(
        isinstance(one, dict)
        and member_text(one, "type") == READY
        and member_text(one, "status") == "True"
        for one in conditions
    )


def index_by_readiness(_: Metadata, body: JsonObject) -> Iterable[str]:
    return (IS_READY,) if is_ready(body) else ()


PROJECT_INDEXES: Final[dict[str, IndexFunction]] = {READINESS: index_by_readiness}


def ready_projects(root: PlaneName, caches: Caches) -> frozenset[str]:
    """Names of all Projects that say they are ready."""
    entries = caches.view(root, PROJECT).entries_by_index(READINESS, IS_READY)
    return frozenset(entry.key.name for entry in entries)
