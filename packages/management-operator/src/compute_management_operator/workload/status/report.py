"""The whole status of a Workload, and the events of its transitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import Statement
from compute_management_operator.workload.observe import Deployment, Seen, counter
from compute_management_operator.workload.plan import ACTION
from compute_management_operator.workload.status import placements, workload
from compute_management_operator.workload.status.observed import (
    Observed,
    OfPlacement,
    derive_observed,
    has_answered,
)
from compute_management_operator.workload.status.told import Blocker, told_conditions
from compute_operator_kit.errors import InvalidSpecError
from compute_operator_kit.intents import Emit, Ensure, Plan, SetStatus, Wait
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.wire import Json, JsonObject, member_list

SUMS: Final = ("replicas", "desiredReplicas", "readyReplicas")
# Right after an edit these would call the old template the new one, so they count only deployments
# that have answered to their present generation.
SUMS_WHEN_CURRENT: Final = ("currentReplicas", "updatedReplicas")
AT_ONCE: Final = timedelta()
TOLD_AS_EVENTS: Final = frozenset(
    {reasons.NO_MATCHING_LOCATION, reasons.NETWORK_NOT_FOUND, reasons.NAME_COLLISION}
)


@dataclass(frozen=True, slots=True)
class Sayings:
    """What is said of a placement, or of the Workload, and what was said there before."""

    statements: tuple[Statement, ...]
    stored: JsonObject


def report(seen: Seen, applied: Applied, now: datetime) -> Plan:
    if labels.WORKLOAD_FINALIZER not in seen.metadata.finalizers:
        # The pass that adds the finalizer does nothing else. The next one waits for no event, which
        # may be lost; but a finalizer that could not be added is a matter of back-off.
        return Plan() if applied.failures else _go_on(seen)
    if seen.metadata.is_deleting and not seen.deployments:
        return Plan()  # the finalizer goes, and the object with it
    observed = derive_observed(seen, applied)
    of_placements, of_workload = _say_all(observed)
    told = SetStatus(
        seen.key,
        seen.metadata.uid,
        seen.metadata.resource_version,
        _status(observed, of_placements, of_workload, now),
        reason=of_workload.statements[0].reason,
        provisional=conditions.provisional(
            "Workload", of_workload.statements, told_conditions(seen.status)
        ),
        is_final=True,  # nothing is derived from what we said ourselves
    )
    sayings = (of_workload, *of_placements.values())
    return Plan((told, *_events(seen, sayings, told)))


def _go_on(seen: Seen) -> Plan:
    if seen.metadata.is_deleting:
        return Plan()
    return Plan.of(Wait(seen.key, reasons.FINALIZER_MISSING, AT_ONCE))


def _say_all(observed: Observed) -> tuple[dict[str, Sayings], Sayings]:
    said: dict[str, Sayings] = {}
    everything: list[Blocker] = []
    for name, placement in observed.placements.items():
        available = placements.state_available(observed, placement)
        blockers = list(placements.ready_blockers(observed, placement))
        everything += blockers
        ready = placements.state_ready(blockers, observed.generation)
        said[name] = Sayings((available, ready), placement.stored)
    available = workload.state_available(observed, (one.statements[0] for one in said.values()))
    ready = workload.state_workload_ready(observed, everything)
    return said, Sayings((available, ready), observed.seen.status)


# --- numbers --------------------------------------------------------------------------------------


def _status(
    observed: Observed, of_placements: dict[str, Sayings], of_workload: Sayings, now: datetime
) -> JsonObject:
    seen = observed.seen
    entries: list[Json] = [
        _placement(observed, name, of_placements[name], now) for name in observed.placements
    ]
    return {
        **seen.status,
        **_counters(observed, seen.deployments),
        "deployments": len(seen.deployments) + observed.created,
        "observedGeneration": observed.generation,
        "conditions": _merged(of_workload, now),
        "placements": entries,
    }


def _placement(observed: Observed, name: str, said: Sayings, now: datetime) -> JsonObject:
    found: OfPlacement = observed.placements[name]
    return {
        **found.stored,
        **_counters(observed, found.deployments),
        "name": name,
        "conditions": _merged(said, now),
    }


def _merged(said: Sayings, now: datetime) -> list[Json]:
    return conditions.merge_documents(member_list(said.stored, "conditions"), said.statements, now)


def _counters(observed: Observed, deployments: Iterable[Deployment]) -> JsonObject:
    counters: dict[str, int] = dict.fromkeys((*SUMS, *SUMS_WHEN_CURRENT), 0)
    for deployment in deployments:
        if not deployment.status:
            continue
        answered = has_answered(observed, deployment)
        for name in (*SUMS, *(SUMS_WHEN_CURRENT if answered else ())):
            counters[name] += counter(deployment.status, name)
    return {**counters}


# --- what people are told -------------------------------------------------------------------------


def _events(seen: Seen, sayings: Iterable[Sayings], told: SetStatus) -> Iterator[Emit]:
    """One event for each sentence that a placement or the Workload begins to say, if its user can
    act on it.
    """
    begun: dict[tuple[str, str], None] = {}
    for said in sayings:
        before = {(one.type, one.reason) for one in told_conditions(said.stored)}
        for one in said.statements:
            if one.reason in TOLD_AS_EVENTS and (one.type, one.reason) not in before:
                begun[one.reason, one.message] = None
    for reason, message in begun:
        yield _warning(seen, reason, message, told)


def rejections(applied: Applied) -> dict[str, str]:
    """Deployments the plane refuses for what they say, each with the words of the event."""
    refused: dict[str, str] = {}
    for outcome in applied.outcomes:
        error = outcome.error
        if isinstance(outcome.intent, Ensure) and isinstance(error, InvalidSpecError):
            name = outcome.intent.key.name
            refused[name] = f'Deployment "{name}" was rejected: {_derive_why(error)}'
    return refused


def _derive_why(error: InvalidSpecError) -> str:
    """The fields, and what is wrong with each, but never what stands in them.

    A server's own sentence repeats the value, and a value may be a secret.
    """
    causes = error.answer.causes if error.answer is not None else ()
    named = [f"{cause.field}: {cause.reason}" for cause in causes if cause.field]
    return ", ".join(named) or "the API server calls it invalid"


def tell_rejection(seen: Seen, message: str) -> Emit:
    return _warning(seen, reasons.DEPLOYMENT_REJECTED, message, None)


def _warning(seen: Seen, reason: str, message: str, after: SetStatus | None) -> Emit:
    return Emit(seen.key, seen.metadata.uid, reason, message, ACTION, type="Warning", after=after)
