"""What is asked for, and which kinds of which plane the answer needs.

Requests are few by design: kinds that explain a block are read after the first look, and only for
the planes on which something is blocked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_kubectl.read import kinds
from compute_kubectl.read.kinds import ReadKind
from compute_kubectl.snapshot.objects import SeenInstance, SeenWorkload
from compute_kubectl.snapshot.planes import CellPlane, Role, Snapshot


class Scope(StrEnum):
    """How much is read."""

    BLOCKS = "blocks"
    """What `why` needs: details only where something is blocked."""
    EVERYTHING = "everything"
    """Every kind, for `tree`, `timeline`, the page and `--save`."""
    CITIES = "cities"
    QUOTA = "quota"
    PLAN = "plan"
    """Deployments and buckets of the project, Clusters of the hub."""


@dataclass(frozen=True, slots=True)
class Question:
    """A namespace, a Workload of it or all of them, and how much is read of the planes."""

    namespace: str
    workload: str = ""
    scope: Scope = Scope.BLOCKS
    all_projects: bool = False


# A Workload has at most this many cells read; more would take minutes, not seconds.
MOST_CELLS: Final = 200

_GATES_OF_QUOTA: Final = frozenset({reasons.QUOTA_EXCEEDED, reasons.PENDING_QUOTA})


def first_of_project(question: Question) -> tuple[ReadKind, ...]:
    """Kinds of the project beside namespace and Workloads."""
    match question.scope:
        case Scope.BLOCKS:
            # Claims of all Workloads are many, and no line of `why --all` shows one.
            claims = (kinds.CLAIMS,) if question.workload else ()
            return (kinds.DEPLOYMENTS, kinds.INSTANCES, *claims)
        case Scope.EVERYTHING:
            return (
                kinds.DEPLOYMENTS,
                kinds.INSTANCES,
                kinds.CLAIMS,
                kinds.BUCKETS,
                kinds.EVENTS,
            )
        case Scope.CITIES:
            return (kinds.DEPLOYMENTS, kinds.INSTANCES)
        case Scope.QUOTA:
            return (kinds.DEPLOYMENTS, kinds.INSTANCES, kinds.CLAIMS, kinds.BUCKETS)
        case Scope.PLAN:
            return (kinds.DEPLOYMENTS, kinds.BUCKETS)


def first_of_hub(question: Question) -> tuple[ReadKind, ...]:
    """Kinds of the hub beside its Clusters."""
    base = (kinds.NAMESPACES, kinds.DEPLOYMENTS, kinds.INSTANCES)
    match question.scope:
        case Scope.BLOCKS:
            return (*base, kinds.BINDINGS)
        case Scope.EVERYTHING:
            return (*base, kinds.BINDINGS, kinds.POLICIES, kinds.EVENTS)
        case Scope.CITIES:
            return (kinds.DEPLOYMENTS, kinds.INSTANCES) if question.all_projects else ()
        case Scope.QUOTA | Scope.PLAN:
            return ()


def first_of_cell(question: Question) -> tuple[ReadKind, ...]:
    match question.scope:
        case Scope.BLOCKS:
            return (kinds.DEPLOYMENTS, kinds.INSTANCES)
        case Scope.EVERYTHING:
            return kinds.KINDS[Role.CELL]
        case Scope.CITIES | Scope.QUOTA | Scope.PLAN:
            return ()


def selector_of(question: Question, kind: ReadKind, uid: str) -> dict[str, str]:
    """The label selector that keeps the Instances of other Workloads on the plane.

    Deployments are not selected: their label is on project objects alone.
    """
    if not question.workload or kind is not kinds.INSTANCES or not uid:
        return {}
    return {"labelSelector": f"{labels.WORKLOAD_UID}={uid}"}


def wanted_cities(question: Question, workloads: tuple[SeenWorkload, ...]) -> set[str] | None:
    """The cities whose cells are read; None for all of them."""
    if not question.workload:
        return None
    chosen = [one for one in workloads if one.meta.name == question.workload]
    if not chosen:
        return None
    return {city for one in chosen for placement in one.placements for city in placement.cities}


# --- the second look ------------------------------------------------------------------------------


def details_of_project(question: Question, snapshot: Snapshot) -> tuple[ReadKind, ...]:
    """Buckets where quota blocks, Events where a stage before the cell does.

    Both only where a city waits for quota and another one has not got that far: requests are few.
    """
    blocked = [one for one in _instances(snapshot) if not one.is_true(conditions.READY)]
    quota = any(labels.QUOTA_GATE in one.gates or _is_short(one) for one in blocked)
    if not quota:
        return (kinds.EVENTS,) if not_settled(snapshot) else ()
    is_early = question.workload and _has_unreported(snapshot)
    return (kinds.BUCKETS, kinds.EVENTS) if is_early else (kinds.BUCKETS,)


def _has_unreported(snapshot: Snapshot) -> bool:
    """Whether a city has no deployment yet, or one that no cell has reported about."""
    project = snapshot.project
    cities = sum(len(placement.cities) for one in project.workloads for placement in one.placements)
    reported = [one for one in project.deployments if one.observed_generation]
    return len(reported) < max(cities, len(project.deployments.items))


def _is_short(instance: SeenInstance) -> bool:
    granted = instance.condition(conditions.QUOTA_GRANTED)
    return granted is not None and granted.reason in _GATES_OF_QUOTA


def not_settled(snapshot: Snapshot) -> bool:
    """Whether a Workload or deployment of the project is not Ready, or is being deleted."""
    project = snapshot.project
    seen = (*project.workloads, *project.deployments)
    return any(one.meta.is_terminating or not one.is_true(conditions.READY) for one in seen)


def details_of_hub(snapshot: Snapshot) -> tuple[ReadKind, ...]:
    """Policies where something waits, or a hub copy has no binding yet."""
    bound = {one.resource_uid for one in snapshot.hub.bindings}
    names = {one.resource_name for one in snapshot.hub.bindings}
    unbound = any(
        one.meta.uid not in bound and one.meta.name not in names for one in snapshot.hub.deployments
    )
    return (kinds.POLICIES,) if unbound or not_settled(snapshot) else ()


def details_of_cell(cell: CellPlane) -> tuple[ReadKind, ...]:
    """Network kinds where a Network gate is left, else Pods of what does not run."""
    blocked = [one for one in cell.instances if not one.is_true(conditions.READY)]
    if any(labels.NETWORK_GATE in one.gates for one in blocked):
        return kinds.NETWORK_KINDS
    return (kinds.PODS,) if blocked else ()


def _instances(snapshot: Snapshot) -> Iterator[SeenInstance]:
    yield from snapshot.project.instances
    for name in sorted(snapshot.cells):
        yield from snapshot.cells[name].instances
