"""Tells how a Workload and its placements are doing. Pure (api.md 4.2, 8.4).

Numbers are sums over the deployments, conditions name the most specific blocker. What this pass has
just written, or could not, is never counted as done: a deployment carries the spec of this
generation only where the plan found nothing to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import Statement
from compute_management_operator.workload.observe import (
    Deployment,
    Identity,
    NetworkName,
    Off,
    Seen,
    counter,
)
from compute_management_operator.workload.plan import (
    ACTION,
    NameTaken,
    NotServed,
    Placed,
    Undecided,
    Verdict,
    missing_networks,
    orphans,
    verdicts,
)
from compute_operator_kit.errors import InvalidSpecError
from compute_operator_kit.intents import Emit, Ensure, Plan, SetStatus
from compute_operator_kit.objects import Unreadable
from compute_operator_kit.outcomes import Applied, Effect
from compute_operator_kit.wire import (
    Json,
    JsonObject,
    member_int,
    member_list,
    member_text,
)

SUMS: Final = ("replicas", "desiredReplicas", "readyReplicas")
# Right after an edit these would call the old template the new one, so they count only deployments
# that have answered to their present generation.
SUMS_WHEN_CURRENT: Final = ("currentReplicas", "updatedReplicas")
TOLD_AS_EVENTS: Final = frozenset(
    {reasons.NO_MATCHING_LOCATION, reasons.NETWORK_NOT_FOUND, reasons.NAME_COLLISION}
)


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that keeps a placement from being available or ready."""

    reason: str
    message: str
    status: str = "False"


BEHIND: Final = Blocker(reasons.INSTANCES_PROVISIONING, "Deployments are being brought up to date")


@dataclass(frozen=True, slots=True)
class Told:
    """A condition as somebody has written it."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Observed:
    """All that the conditions are derived from."""

    seen: Seen
    verdicts: dict[Identity, Verdict]
    unchanged: frozenset[str]  # deployments that carry the spec of this generation already
    written: frozenset[str]  # deployments whose generation this pass has moved
    missing: tuple[NetworkName, ...]
    left_over: tuple[Deployment, ...]


def report(seen: Seen, applied: Applied, now: datetime) -> Plan:
    if labels.WORKLOAD_FINALIZER not in seen.metadata.finalizers:
        return Plan()  # the pass that adds the finalizer does nothing else
    if seen.metadata.is_deleting and not seen.deployments:
        return Plan()  # the finalizer goes, and the object with it
    observed = _observed(seen, applied)
    statements = _workload_statements(observed)
    wanted = _status(observed, statements, now)
    stored = told_conditions(seen.status)
    told = SetStatus(
        seen.key,
        seen.metadata.uid,
        seen.metadata.resource_version,
        wanted,
        reason=statements[0].reason,
        provisional=conditions.provisional(
            "Workload", statements, stored, is_terminating=seen.metadata.is_deleting
        ),
    )
    return Plan((told, *_events(seen, statements, stored, told), *_rejections(seen, applied)))


def _observed(seen: Seen, applied: Applied) -> Observed:
    effects: dict[str, Effect] = {
        outcome.intent.key.name: outcome.effect
        for outcome in applied.outcomes
        if isinstance(outcome.intent, Ensure)
    }
    return Observed(
        seen=seen,
        verdicts=verdicts(seen),
        unchanged=frozenset(name for name, effect in effects.items() if effect is Effect.EQUAL),
        written=frozenset(name for name, effect in effects.items() if effect is Effect.WRITTEN),
        missing=missing_networks(seen),
        left_over=orphans(seen),
    )


# --- numbers --------------------------------------------------------------------------------------


def _status(observed: Observed, statements: tuple[Statement, ...], now: datetime) -> JsonObject:
    seen = observed.seen
    status: JsonObject = dict(seen.status)
    status |= _counters(observed, seen.deployments)
    status["deployments"] = len(seen.deployments)
    status["observedGeneration"] = seen.metadata.generation
    status["conditions"] = _merged(seen.status, statements, now)
    placements: list[Json] = [_placement(observed, name, now) for name in _placement_names(seen)]
    status["placements"] = placements
    return status


def _merged(found: JsonObject, statements: Iterable[Statement], now: datetime) -> list[Json]:
    return conditions.merge_documents(member_list(found, "conditions"), statements, now)


def _counters(observed: Observed, deployments: Iterable[Deployment]) -> JsonObject:
    counters: dict[str, int] = dict.fromkeys((*SUMS, *SUMS_WHEN_CURRENT), 0)
    for deployment in deployments:
        answered = _has_answered(observed, deployment)
        for name in (*SUMS, *(SUMS_WHEN_CURRENT if answered else ())):
            counters[name] += counter(deployment.status, name)
    return {**counters}


def _has_answered(observed: Observed, deployment: Deployment) -> bool:
    """Whether its status is about its present generation; one this pass moved cannot be."""
    if deployment.name in observed.written:
        return False
    return member_int(deployment.status, "observedGeneration") == deployment.metadata.generation


# --- placements -----------------------------------------------------------------------------------


def _placement_names(seen: Seen) -> list[str]:
    """Every placement of the spec and those that still own deployments, by name."""
    wanted = {placement.name for placement in seen.placements}
    owning = {one.identity.placement for one in seen.deployments if one.identity.placement}
    return sorted(wanted | owning)


def _of_placement(seen: Seen, name: str) -> tuple[Deployment, ...]:
    return tuple(one for one in seen.deployments if one.identity.placement == name)


def _placement(observed: Observed, name: str, now: datetime) -> JsonObject:
    stored = _stored_placement(observed.seen, name)
    status: JsonObject = dict(stored)
    status |= _counters(observed, _of_placement(observed.seen, name))
    status["name"] = name
    status["conditions"] = _merged(stored, _placement_statements(observed, name), now)
    return status


def _stored_placement(seen: Seen, name: str) -> JsonObject:
    for entry in member_list(seen.status, "placements"):
        if isinstance(entry, dict) and member_text(entry, "name") == name:
            return entry
    return {}


def _placement_statements(observed: Observed, name: str) -> tuple[Statement, ...]:
    generation = observed.seen.metadata.generation
    return (
        _available_placement(observed, name),
        _ready(generation, list(_placement_blockers(observed, name))),
    )


def _available_placement(observed: Observed, name: str) -> Statement:
    generation = observed.seen.metadata.generation
    deployments = _of_placement(observed.seen, name)
    if any(_is_available(deployment) for deployment in deployments):
        found = "At least one available deployment was found"
        return _statement(
            conditions.AVAILABLE, "True", reasons.AVAILABLE_DEPLOYMENT_FOUND, found, generation
        )
    nothing = Blocker(
        reasons.NO_AVAILABLE_DEPLOYMENTS, "No available deployments were found for the placement"
    )
    told = (_told(one, conditions.AVAILABLE) for one in deployments)
    candidates = [*_unplaced(observed, name), *(one for one in told if one is not None), nothing]
    return _blocked(conditions.AVAILABLE, candidates, generation)


def _unplaced(observed: Observed, name: str) -> Iterator[Blocker]:
    """Why cities of the placement have no deployment."""
    mine = {one: what for one, what in observed.verdicts.items() if one.placement == name}
    nowhere = [one.city_code for one, what in mine.items() if isinstance(what, NotServed)]
    if nowhere:
        yield _no_location(nowhere)
    elif any(isinstance(what, Undecided) for what in mine.values()):
        # Not knowing is no verdict: what was said before the outage still stands.
        yield from _said_before(observed.seen, name)
    for what in mine.values():
        if isinstance(what, NameTaken):
            message = f'Deployment name "{what.name}" is taken by another workload'
            yield Blocker(reasons.NAME_COLLISION, message)


def _said_before(seen: Seen, name: str) -> Iterator[Blocker]:
    for told in told_conditions(_stored_placement(seen, name)):
        if told.type == conditions.AVAILABLE and told.reason == reasons.NO_MATCHING_LOCATION:
            yield Blocker(told.reason, told.message)


def _no_location(codes: Iterable[str]) -> Blocker:
    named = ", ".join(sorted(set(codes)))
    return Blocker(reasons.NO_MATCHING_LOCATION, f"No location found for city codes: {named}")


def _is_available(deployment: Deployment) -> bool:
    return conditions.is_true(told_conditions(deployment.status), conditions.AVAILABLE)


def _told(deployment: Deployment, condition_type: str) -> Blocker | None:
    found = conditions.find(told_conditions(deployment.status), condition_type)
    return None if found is None else Blocker(found.reason, found.message, found.status)


# --- ready ----------------------------------------------------------------------------------------


def _placement_blockers(observed: Observed, name: str) -> Iterator[Blocker]:
    """All that keeps a placement from being ready; nothing means it is."""
    if observed.missing:
        yield _no_network(observed.seen, observed.missing)
    yield from _unplaced(observed, name)
    yield from _lost_locations(observed, name)
    for identity, verdict in observed.verdicts.items():
        if identity.placement == name:
            yield from _not_ready(observed, verdict)
    if any(one.identity.placement == name for one in observed.left_over):
        yield BEHIND


def _lost_locations(observed: Observed, name: str) -> Iterator[Blocker]:
    """Cities that run and whose Location is gone: nothing is deleted, but it is said."""
    served = observed.seen.served
    if isinstance(served, Unreadable | Off):
        return
    lost = [
        one.city_code
        for one, verdict in observed.verdicts.items()
        if one.placement == name and isinstance(verdict, Placed) and one.city_code not in served
    ]
    if lost:
        yield _no_location(lost)


def _not_ready(observed: Observed, verdict: Verdict) -> Iterator[Blocker]:
    if not isinstance(verdict, Placed):
        yield BEHIND
        return
    deployment = verdict.deployment
    ready = _told(deployment, conditions.READY)
    if ready is None or ready.status != "True":
        yield ready or BEHIND
    elif not _is_current(observed, deployment):
        yield BEHIND


def _is_current(observed: Observed, deployment: Deployment) -> bool:
    """Whether what it says of itself is about the spec of this generation."""
    return (
        not deployment.metadata.is_deleting
        and deployment.name in observed.unchanged
        and _has_answered(observed, deployment)
    )


def _no_network(seen: Seen, missing: Iterable[NetworkName]) -> Blocker:
    named = sorted(
        one.name if one.namespace == seen.key.namespace else f"{one.namespace}/{one.name}"
        for one in missing
    )
    return Blocker(reasons.NETWORK_NOT_FOUND, f"Unable to find networks: {', '.join(named)}")


def _ready(generation: int, blockers: list[Blocker]) -> Statement:
    if not blockers:
        done = "All deployments are ready"
        return _statement(conditions.READY, "True", reasons.PLACEMENTS_READY, done, generation)
    # Who only waits says less than any reason that a deployment gives.
    named = [one for one in blockers if one != BEHIND and conditions.rank(one.reason) >= 0]
    return _blocked(conditions.READY, named or [BEHIND], generation)


# --- the Workload ---------------------------------------------------------------------------------


def _workload_statements(observed: Observed) -> tuple[Statement, ...]:
    return (_available(observed), _workload_ready(observed))


def _available(observed: Observed) -> Statement:
    seen = observed.seen
    generation = seen.metadata.generation
    placements = [_available_placement(observed, name) for name in _placement_names(seen)]
    if any(one.status == "True" for one in placements):
        found = "At least one available placement was found"
        return _statement(
            conditions.AVAILABLE, "True", reasons.AVAILABLE_PLACEMENT_FOUND, found, generation
        )
    nothing = Blocker(
        reasons.NO_AVAILABLE_PLACEMENTS, "No available placements were found for the workload"
    )
    missing = [_no_network(seen, observed.missing)] if observed.missing else []
    # A placement that only says "nothing here" says less than the Workload does about itself.
    told = [
        Blocker(one.reason, one.message)
        for one in placements
        if one.reason != reasons.NO_AVAILABLE_DEPLOYMENTS
    ]
    return _blocked(conditions.AVAILABLE, [*missing, *told, nothing], generation)


def _workload_ready(observed: Observed) -> Statement:
    seen = observed.seen
    generation = seen.metadata.generation
    if seen.metadata.is_deleting:
        names = ", ".join(one.name for one in seen.deployments)
        waiting = f"Waiting for deployments to go: {names}"
        return _statement(conditions.READY, "False", reasons.TERMINATING, waiting, generation)
    blockers = [
        blocker
        for name in _placement_names(seen)
        for blocker in _placement_blockers(observed, name)
    ]
    if not (blockers or observed.verdicts):
        # Admission was bypassed: nothing is asked for, so nothing can be ready.
        blockers = [BEHIND]
    return _ready(generation, blockers)


def _blocked(condition_type: str, candidates: list[Blocker], generation: int) -> Statement:
    worst = conditions.summarise(candidates) or BEHIND
    return _statement(condition_type, "False", worst.reason, worst.message, generation)


def _statement(
    condition_type: str,
    status: Literal["True", "False"],
    reason: str,
    message: str,
    generation: int,
) -> Statement:
    return Statement(condition_type, status, reason, message, generation)


# --- what people are told -------------------------------------------------------------------------


def told_conditions(status: JsonObject) -> tuple[Told, ...]:
    """The conditions of a raw status; an entry without a type is nobody's."""
    return tuple(
        Told(
            type=member_text(entry, "type"),
            status=member_text(entry, "status"),
            reason=member_text(entry, "reason"),
            message=member_text(entry, "message"),
        )
        for entry in member_list(status, "conditions")
        if isinstance(entry, dict) and member_text(entry, "type")
    )


def _events(
    seen: Seen, statements: Iterable[Statement], stored: Iterable[Told], told: SetStatus
) -> Iterator[Emit]:
    """One event when the Workload begins to be blocked for a reason that its user can act on."""
    before = {one.reason for one in stored}
    for reason, message in {one.reason: one.message for one in statements}.items():
        if reason in TOLD_AS_EVENTS and reason not in before:
            yield _warning(seen, reason, message, told)


def _rejections(seen: Seen, applied: Applied) -> Iterator[Emit]:
    for outcome in applied.outcomes:
        if isinstance(outcome.intent, Ensure) and isinstance(outcome.error, InvalidSpecError):
            message = f'Deployment "{outcome.intent.key.name}" was rejected: {outcome.error}'
            yield _warning(seen, reasons.DEPLOYMENT_REJECTED, message, None)


def _warning(seen: Seen, reason: str, message: str, after: SetStatus | None) -> Emit:
    return Emit(seen.key, seen.metadata.uid, reason, message, ACTION, type="Warning", after=after)
