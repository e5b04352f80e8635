"""All that the conditions of one Workload are derived from, grouped by placement once.

A Workload may have thousands of placements: whatever is asked per placement must be found, not
searched for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compute_api_types import reasons
from compute_management_operator.workload.observe import (
    Deployment,
    Identity,
    NetworkName,
    Seen,
)
from compute_management_operator.workload.plan import (
    Verdict,
    are_networks_unknown,
    leftovers,
    missing_networks,
    verdicts,
)
from compute_management_operator.workload.status.told import Blocker, told_conditions
from compute_operator_kit.intents import Ensure
from compute_operator_kit.outcomes import Applied, Effect
from compute_operator_kit.wire import JsonObject, member_int, member_list, member_text


@dataclass(slots=True)
class OfPlacement:
    """What there is of one placement."""

    verdicts: dict[Identity, Verdict] = field(default_factory=dict[Identity, Verdict])
    deployments: list[Deployment] = field(default_factory=list[Deployment])
    has_leftovers: bool = False
    stored: JsonObject = field(default_factory=dict)  # what its status says now


@dataclass(frozen=True, slots=True)
class Observed:
    """One moment, and what this pass made of it."""

    seen: Seen
    placements: Mapping[str, OfPlacement]  # those of the spec and those that own deployments
    network_blocker: Blocker | None
    unchanged: frozenset[str]  # deployments that carry the spec of this generation already
    written: frozenset[str]  # deployments whose generation this pass has moved
    created: int  # deployments that did not exist before this pass
    has_strays: bool  # leftovers that do not even name a placement

    @property
    def generation(self) -> int:
        return self.seen.metadata.generation


def derive_observed(seen: Seen, applied: Applied) -> Observed:
    ensured = [
        (outcome.intent, outcome.effect)
        for outcome in applied.outcomes
        if isinstance(outcome.intent, Ensure)
    ]

    def having(effect: Effect) -> frozenset[str]:
        return frozenset(intent.key.name for intent, found in ensured if found is effect)

    existing = {deployment.name for deployment in seen.deployments}
    written = having(Effect.WRITTEN)
    return Observed(
        seen=seen,
        placements=_group(seen),
        network_blocker=_find_network_blocker(seen),
        unchanged=having(Effect.EQUAL),
        written=written,
        created=len(written - existing),
        has_strays=any(not one.identity.placement for one in seen.deployments),
    )


def _group(seen: Seen) -> dict[str, OfPlacement]:
    """By name, so that whatever goes through them goes in the order that ties need."""
    placed = [one for one in seen.deployments if one.identity.placement]
    names = {one.name for one in seen.placements} | {one.identity.placement for one in placed}
    grouped = {name: OfPlacement() for name in sorted(names)}
    for identity, verdict in verdicts(seen).items():
        grouped[identity.placement].verdicts[identity] = verdict
    for deployment in placed:
        grouped[deployment.identity.placement].deployments.append(deployment)
    for name in {one.identity.placement for one in leftovers(seen)} & names:
        grouped[name].has_leftovers = True
    for entry in member_list(seen.status, "placements"):
        if isinstance(entry, dict) and (name := member_text(entry, "name")) in grouped:
            grouped[name].stored = grouped[name].stored or entry
    return grouped


def _find_network_blocker(seen: Seen) -> Blocker | None:
    """Networks that are missing; while nobody can tell, what was said before still stands."""
    if missing := missing_networks(seen):
        return _no_network(missing, seen.key.namespace)
    if are_networks_unknown(seen):
        told = told_conditions(seen.status)
        said = next((one for one in told if one.reason == reasons.NETWORK_NOT_FOUND), None)
        return None if said is None else Blocker(said.reason, said.message)
    return None


def _no_network(missing: Iterable[NetworkName], home: str) -> Blocker:
    """Networks outside the Workload's namespace are named with theirs."""
    named = sorted(one.name if one.namespace == home else str(one) for one in missing)
    return Blocker(reasons.NETWORK_NOT_FOUND, f"Unable to find networks: {', '.join(named)}")


def has_answered(observed: Observed, deployment: Deployment) -> bool:
    """Whether its status is about its present generation; one this pass moved cannot be."""
    if deployment.name in observed.written:
        return False
    return member_int(deployment.status, "observedGeneration") == deployment.metadata.generation


def is_current(observed: Observed, deployment: Deployment) -> bool:
    """Whether what it says of itself is about the spec of this generation."""
    return (
        not deployment.metadata.is_deleting
        and deployment.name in observed.unchanged
        and has_answered(observed, deployment)
    )
