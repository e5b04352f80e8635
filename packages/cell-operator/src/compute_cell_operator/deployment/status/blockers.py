"""Blockers of a deployment: reasons why it is not available or not ready, in the order of cell.md
7. Pure.

Messages reach tenants, so a server's own text is never passed on: it may repeat a secret field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from compute_api_types import conditions, reasons
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.plan import Decision
from compute_cell_operator.deployment.plan.location import (
    Located,
    LocationUndecided,
    NoLocation,
    WrongCity,
)
from compute_cell_operator.deployment.plan.steps import AWAITING_DATA, WaitStep
from compute_cell_operator.deployment.slots import DeploymentSlotState, SlotInstance, SlotSuspension
from compute_cell_operator.deployment.status.counters import Counters
from compute_cell_operator.network.plan import NetworkRefused, NetworkWaiting
from compute_cell_operator.planes import INSTANCE
from compute_cell_operator.referenced_data.judgement import SOURCE_REASONS
from compute_operator_kit.core.errors import ReconcileError, RejectedError
from compute_operator_kit.intents.intents import Ensure
from compute_operator_kit.intents.outcomes import Applied

BROKEN: Final = frozenset(
    {
        reasons.IMAGE_UNAVAILABLE,
        reasons.INSTANCE_CRASHING,
        reasons.CONFIGURATION_ERROR,
        reasons.UNKNOWN_INSTANCE_TYPE,
        *SOURCE_REASONS,
    }
)
_AWAITING_DATA: Final = frozenset(
    {reasons.AWAITING_PROPAGATION, reasons.RESOLVING, reasons.REFERENCED_DATA_NOT_READY}
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
    """A reason with its message; its rank is the reason's."""

    reason: str
    message: str

    @property
    def rank(self) -> int:
        return conditions.rank(self.reason)


@dataclass(frozen=True, slots=True)
class HeldSlot:
    """A slot that waits for quota."""

    ordinal: int
    quota: ReportedCondition


def find_blockers(
    observed: ObservedDeployment, decision: Decision, applied: Applied, counters: Counters
) -> tuple[Blocker, ...]:
    """Every row that applies, in the order of the table."""
    return (
        *_suspended(observed),
        *_wrong_city(observed, decision),
        *_network_refused(decision),
        *_not_created(applied),
        *_broken(observed),
        *_roll_held(observed, decision),
        *_data_awaited(observed),
        *_quota(observed, counters),
        *_network_awaited(observed, decision),
        *_provisioning(observed, counters),
    )


def find_held(observed: ObservedDeployment) -> tuple[HeldSlot, ...]:
    """Desired slots, not terminating, that wait for quota, by ordinal."""
    return tuple(
        HeldSlot(ordinal, quota)
        for ordinal, instance in _desired(observed)
        if not instance.is_terminating
        and (quota := instance.condition(conditions.QUOTA_GRANTED)) is not None
        and _holds(quota)
    )


def _holds(quota: ReportedCondition) -> bool:
    if quota.status == "False":
        return quota.reason != reasons.UNKNOWN_INSTANCE_TYPE
    return quota.status == "Unknown" and quota.reason == reasons.QUOTA_NO_BUDGET


def _desired(observed: ObservedDeployment) -> Iterator[tuple[int, SlotInstance]]:
    for ordinal, instance in sorted(observed.slots.by_ordinal.items()):
        if ordinal < observed.desired:
            yield ordinal, instance


# --- rows of the table ----------------------------------------------------------------------------


def _suspended(observed: ObservedDeployment) -> Iterator[Blocker]:
    """`stopped` only where every provider reports so: others report nothing when they have removed
    what ran.
    """
    if not observed.is_suspended:
        return
    affected = [
        one.suspension for one in observed.owned if one.suspension is not SlotSuspension.NONE
    ]
    is_stopped = bool(affected) and all(one is SlotSuspension.STOPPED for one in affected)
    state = "stopped" if is_stopped else "suspended"
    message = f"The project is suspended; {len(affected)} instance(s) are {state}"
    yield Blocker(reasons.SUSPENDED, message)


def _wrong_city(observed: ObservedDeployment, decision: Decision) -> Iterator[Blocker]:
    if isinstance(decision.resolution, WrongCity):
        asked, serves = observed.spec.city_code, observed.cell_city
        yield Blocker(
            reasons.CITY_CODE_MISMATCH,
            f'Deployment asked for city "{asked}" but this cell serves "{serves}"; '
            "it was delivered to the wrong cell",
        )


def _network_refused(decision: Decision) -> Iterator[Blocker]:
    if isinstance(decision.readiness, NetworkRefused):
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
    """The rejected fields with a reason each, or the kind of refusal.

    Never the server's own text: it repeats field values, which may be secret, and a refusal of
    rights names this operator (faults.md G10, O10).
    """
    if error.answer is None:
        return error.message
    named = [f"{cause.field}: {cause.reason}" for cause in error.answer.causes if cause.field]
    code = f"the API server answered {error.answer.status} {error.answer.reason}".rstrip()
    return ", ".join(named) or code


def _broken(observed: ObservedDeployment) -> Iterator[Blocker]:
    for _, instance in _desired(observed):
        ready = instance.condition(conditions.READY)
        if ready is not None and not ready.is_true and ready.reason in BROKEN:
            yield Blocker(ready.reason, f'Instance "{instance.name}": {ready.message}')


def _roll_held(observed: ObservedDeployment, decision: Decision) -> Iterator[Blocker]:
    """A healthy Instance that is not replaced before the data of the new template is there."""
    for step in decision.steps:
        if isinstance(step, WaitStep) and step.reason == AWAITING_DATA and observed.data:
            name = observed.slots.by_ordinal[step.ordinal].name
            is_terminal = observed.data.reason in SOURCE_REASONS
            reason = observed.data.reason if is_terminal else reasons.REFERENCED_DATA_NOT_READY
            kept = f'Instance "{name}" keeps running the former template'
            yield Blocker(reason, f"{kept}: {observed.data.message}")


def _data_awaited(observed: ObservedDeployment) -> Iterator[Blocker]:
    for _, instance in _desired(observed):
        ready = instance.condition(conditions.READY)
        if ready is not None and not ready.is_true and ready.reason in _AWAITING_DATA:
            message = f'Instance "{instance.name}": {ready.message}'
            yield Blocker(reasons.REFERENCED_DATA_NOT_READY, message)


def _quota(observed: ObservedDeployment, counters: Counters) -> Iterator[Blocker]:
    held = find_held(observed)
    if held:
        yield Blocker(
            reasons.QUOTA_NOT_GRANTED,
            f"{len(held)} of {counters.desired} desired instances pending quota: "
            f"{held[0].quota.message}",
        )


def _network_awaited(observed: ObservedDeployment, decision: Decision) -> Iterator[Blocker]:
    if isinstance(decision.resolution, NoLocation):
        message = f'No Location matches city code "{observed.spec.city_code}"'
        yield Blocker(reasons.NO_MATCHING_LOCATION, message)
    elif isinstance(decision.readiness, NetworkWaiting):
        message = f"Network is being provisioned: waiting for {decision.readiness.what}"
        yield Blocker(reasons.NETWORK_PROVISIONING, message)
    elif (
        isinstance(decision.resolution, LocationUndecided | Located) and decision.readiness is None
    ):
        # The network cannot be evaluated now: the stored reason stays.
        yield from _stored_network_blocker(observed)


def _stored_network_blocker(observed: ObservedDeployment) -> Iterator[Blocker]:
    for kind in (conditions.AVAILABLE, conditions.REPLICAS_READY):
        stored = conditions.find(observed.status.conditions, kind)
        if stored is not None and stored.reason in _ABOUT_NETWORK:
            yield Blocker(stored.reason, stored.message)
            return


def _provisioning(observed: ObservedDeployment, counters: Counters) -> Iterator[Blocker]:
    foreign = [n for n in sorted(observed.slots.foreign) if n < observed.desired]
    if foreign:
        name = observed.slots.foreign[foreign[0]].name
        message = f'Instance "{name}" belongs to another deployment; waiting for it to go'
    elif counters.replicas:
        message = "Instances are being provisioned"
    else:
        message = "No instances available yet"
    yield Blocker(reasons.INSTANCES_PROVISIONING, message)


def has_stale_slot(observed: ObservedDeployment) -> bool:
    stale = {DeploymentSlotState.STALE_READY, DeploymentSlotState.STALE_UNREADY}
    return any(observed.slots.state(ordinal) in stale for ordinal, _ in _desired(observed))


def are_all_ready(observed: ObservedDeployment) -> bool:
    ready = sum(instance.is_ready for _, instance in _desired(observed))
    return ready == observed.desired
