"""What keeps a deployment from being available or ready, in the order of cell.md 7. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from compute_api_types import conditions, reasons
from compute_cell_operator.deployment.observe import FoundInstance, Seen
from compute_cell_operator.deployment.plan.decision import Decision
from compute_cell_operator.deployment.plan.location import Located, NoLocation, Undecided, WrongCity
from compute_cell_operator.deployment.slots import SlotState
from compute_cell_operator.deployment.status.counters import Counters
from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.network.plan import Refused, Waiting
from compute_cell_operator.told import Told, read_conditions
from compute_operator_kit.errors import ReconcileError, RejectedError
from compute_operator_kit.intents import Ensure
from compute_operator_kit.outcomes import Applied

BROKEN: Final = frozenset(
    {
        reasons.IMAGE_UNAVAILABLE,
        reasons.INSTANCE_CRASHING,
        reasons.CONFIGURATION_ERROR,
        reasons.UNKNOWN_INSTANCE_TYPE,
    }
)
_ABOUT_NETWORK: Final = frozenset(
    {
        reasons.NETWORK_FAILED_TO_CREATE,
        reasons.NETWORK_NOT_FOUND,
        reasons.NO_MATCHING_LOCATION,
        reasons.NETWORK_PROVISIONING,
    }
)


@dataclass(frozen=True, slots=True)
class Blocker:
    """A reason and a sentence; its rank is the reason's."""

    reason: str
    message: str

    @property
    def rank(self) -> int:
        return conditions.rank(self.reason)


@dataclass(frozen=True, slots=True)
class Held:
    """A slot that quota holds."""

    ordinal: int
    quota: Told


def find_blockers(
    seen: Seen, decision: Decision, applied: Applied, counters: Counters
) -> tuple[Blocker, ...]:
    """Every row that applies, in the order of the table."""
    return (
        *_wrong_city(seen, decision),
        *_network_refused(decision),
        *_not_created(applied),
        *_broken(seen),
        *_quota(seen, counters),
        *_network_awaited(seen, decision),
        *_provisioning(seen, counters),
    )


def find_held(seen: Seen) -> tuple[Held, ...]:
    """Wanted slots, not terminating, that wait for quota, by ordinal."""
    return tuple(
        Held(ordinal, quota)
        for ordinal, found in _wanted(seen)
        if not found.metadata.is_deleting
        and (quota := found.told(conditions.QUOTA_GRANTED)) is not None
        and _holds(quota)
    )


def _holds(quota: Told) -> bool:
    if quota.status == "False":
        return quota.reason != reasons.UNKNOWN_INSTANCE_TYPE
    return quota.status == "Unknown" and quota.reason == reasons.QUOTA_NO_BUDGET


def _wanted(seen: Seen) -> Iterator[tuple[int, FoundInstance]]:
    for ordinal in sorted(seen.slots.by_ordinal):
        found = seen.in_slot(ordinal)
        if found is not None and ordinal < seen.desired:
            yield ordinal, found


# --- the rows -------------------------------------------------------------------------------------


def _wrong_city(seen: Seen, decision: Decision) -> Iterator[Blocker]:
    if isinstance(decision.resolution, WrongCity):
        asked, serves = seen.city_code, seen.cell_city
        yield Blocker(
            reasons.CITY_CODE_MISMATCH,
            f'Deployment asked for city "{asked}" but this cell serves "{serves}"; '
            "it was delivered to the wrong cell",
        )


def _network_refused(decision: Decision) -> Iterator[Blocker]:
    if isinstance(decision.readiness, Refused):
        yield Blocker(decision.readiness.reason, decision.readiness.message)


def _not_created(applied: Applied) -> Iterator[Blocker]:
    for outcome in applied.outcomes:
        intent = outcome.intent
        is_create = isinstance(intent, Ensure) and intent.uid is None
        if is_create and intent.key.kind == INSTANCE and isinstance(outcome.error, RejectedError):
            yield Blocker(
                reasons.INSTANCE_FAILED_TO_CREATE,
                f'Instance "{intent.key.name}" could not be created: {_cause(outcome.error)}',
            )


def _cause(error: ReconcileError) -> str:
    """The fields and what is wrong with each, or the kind of refusal: its owner reads this.

    Never the server's own sentence: it repeats what stands in a field, which may be a secret, and
    a refusal of rights names us (faults.md G10, O10).
    """
    if error.answer is None:
        return error.message
    named = [f"{cause.field}: {cause.reason}" for cause in error.answer.causes if cause.field]
    code = f"the API server answered {error.answer.status} {error.answer.reason}".rstrip()
    return ", ".join(named) or code


def _broken(seen: Seen) -> Iterator[Blocker]:
    for _, found in _wanted(seen):
        ready = found.told(conditions.READY)
        if ready is not None and not ready.is_true and ready.reason in BROKEN:
            yield Blocker(ready.reason, f'Instance "{found.metadata.name}": {ready.message}')


def _quota(seen: Seen, counters: Counters) -> Iterator[Blocker]:
    held = find_held(seen)
    if held:
        yield Blocker(
            reasons.QUOTA_NOT_GRANTED,
            f"{len(held)} of {counters.desired} desired instances pending quota: "
            f"{held[0].quota.message}",
        )


def _network_awaited(seen: Seen, decision: Decision) -> Iterator[Blocker]:
    if isinstance(decision.resolution, NoLocation):
        message = f'No Location matches city code "{seen.city_code}"'
        yield Blocker(reasons.NO_MATCHING_LOCATION, message)
    elif isinstance(decision.readiness, Waiting):
        message = f"Network is being provisioned: waiting for {decision.readiness.what}"
        yield Blocker(reasons.NETWORK_PROVISIONING, message)
    elif isinstance(decision.resolution, Undecided | Located) and decision.readiness is None:
        # Nothing is known that was not known before, so nothing else is said.
        yield from _said_before(seen)


def _said_before(seen: Seen) -> Iterator[Blocker]:
    said = read_conditions(seen.status)
    for kind in (conditions.AVAILABLE, conditions.REPLICAS_READY):
        found = conditions.find(said, kind)
        if found is not None and found.reason in _ABOUT_NETWORK:
            yield Blocker(found.reason, found.message)
            return


def _provisioning(seen: Seen, counters: Counters) -> Iterator[Blocker]:
    foreign = [n for n in sorted(seen.slots.foreign) if n < seen.desired]
    if foreign:
        name = seen.slots.foreign[foreign[0]].name
        message = f'Instance "{name}" belongs to another deployment; waiting for it to go'
    elif counters.replicas:
        message = "Instances are being provisioned"
    else:
        message = "No instances available yet"
    yield Blocker(reasons.INSTANCES_PROVISIONING, message)


def has_stale_slot(seen: Seen) -> bool:
    stale = {SlotState.STALE_READY, SlotState.STALE_UNREADY}
    return any(seen.slots.state(ordinal) in stale for ordinal, _ in _wanted(seen))


def are_all_ready(seen: Seen) -> bool:
    ready = sum(found.is_ready for _, found in _wanted(seen))
    return ready == seen.desired
