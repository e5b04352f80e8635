"""All that the conditions of one Workload are derived from, grouped by placement once.

A Workload may have thousands of placements: a search through all deployments for each placement
would take quadratic time. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compute_api_types import reasons
from compute_management_operator.stored_status import NO_STATUS, StoredStatus
from compute_management_operator.workload.observe import (
    DeploymentIdentity,
    NetworkName,
    ObservedWorkload,
    WorkloadChild,
)
from compute_management_operator.workload.plan import (
    CityState,
    are_networks_unknown,
    derive_city_states,
    leftovers,
    missing_networks,
)
from compute_management_operator.workload.status.conditions import Blocker, blocker_of
from compute_operator_kit.intents.intents import Ensure
from compute_operator_kit.intents.outcomes import Applied, Effect


@dataclass(slots=True)
class PlacementInputs:
    """One placement of the spec, or one that deployments still name."""

    cities: dict[DeploymentIdentity, CityState] = field(
        default_factory=dict[DeploymentIdentity, CityState]
    )
    deployments: list[WorkloadChild] = field(default_factory=list[WorkloadChild])
    has_leftovers: bool = False
    stored: StoredStatus = NO_STATUS  # its entry in the stored status


@dataclass(frozen=True, slots=True)
class StatusInputs:
    """One Workload at one moment, and what this reconcile wrote."""

    observed: ObservedWorkload
    placements: Mapping[str, PlacementInputs]  # those of the spec and those that own deployments
    network_blocker: Blocker | None
    unchanged: frozenset[str]  # deployments that carry the spec of this generation already
    written: frozenset[str]  # deployments with a generation that this reconcile has changed
    created: int  # deployments that did not exist before this reconcile
    has_strays: bool  # leftovers that do not name a placement

    @property
    def generation(self) -> int:
        return self.observed.metadata.generation


def derive_inputs(seen: ObservedWorkload, applied: Applied) -> StatusInputs:
    ensured = [
        (outcome.intent, outcome.effect)
        for outcome in applied.outcomes
        if isinstance(outcome.intent, Ensure)
    ]

    def having(effect: Effect) -> frozenset[str]:
        return frozenset(intent.key.name for intent, became in ensured if became is effect)

    existing = {deployment.name for deployment in seen.deployments}
    written = having(Effect.WRITTEN)
    return StatusInputs(
        observed=seen,
        placements=_group(seen),
        network_blocker=_find_network_blocker(seen),
        unchanged=having(Effect.EQUAL),
        written=written,
        created=len(written - existing),
        has_strays=any(not one.identity.placement for one in seen.deployments),
    )


def _group(seen: ObservedWorkload) -> dict[str, PlacementInputs]:
    """Placements in the order of their names, by which ties between blockers are decided."""
    placed = [one for one in seen.deployments if one.identity.placement]
    names = {one.name for one in seen.placements} | {one.identity.placement for one in placed}
    stored = seen.stored_placements
    grouped = {name: PlacementInputs(stored=stored.get(name, NO_STATUS)) for name in sorted(names)}
    for identity, city in derive_city_states(seen).items():
        grouped[identity.placement].cities[identity] = city
    for deployment in placed:
        grouped[deployment.identity.placement].deployments.append(deployment)
    for name in {one.identity.placement for one in leftovers(seen)} & names:
        grouped[name].has_leftovers = True
    return grouped


def _find_network_blocker(seen: ObservedWorkload) -> Blocker | None:
    """Networks that are missing; while they are unreadable, the stored condition stands."""
    if missing := missing_networks(seen):
        return _no_network(missing, seen.key.namespace)
    if are_networks_unknown(seen):
        stored = (
            blocker_of(one)
            for one in seen.status.conditions
            if one.reason == reasons.NETWORK_NOT_FOUND
        )
        return next(stored, None)
    return None


def _no_network(missing: Iterable[NetworkName], home: str) -> Blocker:
    """A Network of another namespace is named with its namespace."""
    named = sorted(one.name if one.namespace == home else str(one) for one in missing)
    return Blocker(reasons.NETWORK_NOT_FOUND, f"Unable to find networks: {', '.join(named)}")


def has_answered(observed: StatusInputs, deployment: WorkloadChild) -> bool:
    """Whether its status is about its present generation; not after a write of this reconcile."""
    if deployment.name in observed.written:
        return False
    return deployment.status.observed_generation == deployment.metadata.generation


def is_current(observed: StatusInputs, deployment: WorkloadChild) -> bool:
    """Whether its status is about the spec of this generation of the Workload."""
    return (
        not deployment.metadata.is_deleting
        and deployment.name in observed.unchanged
        and has_answered(observed, deployment)
    )
