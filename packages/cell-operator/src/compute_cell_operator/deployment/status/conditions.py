"""Conditions `Available`, `ReplicasReady` and `Ready` of a deployment. Pure (cell.md 7).

`ReplicasReady` and `Ready` differ in one reason, that of denied quota; any other difference would
give users two answers to one question.
"""

from __future__ import annotations

from typing import Final, Literal

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.status.blockers import (
    Blocker,
    are_all_ready,
    find_held,
    has_stale_slot,
)
from compute_cell_operator.deployment.status.counters import Counters
from compute_cell_operator.finalizers import describe_hold

# Blockers of this rank are shown also while an Instance is ready: referenced data, and above.
LASTING: Final = 4
ABOUT_NETWORK: Final = 2


def state_conditions(
    observed: ObservedDeployment, counters: Counters, blockers: tuple[Blocker, ...]
) -> tuple[Statement, ...]:
    """Available, ReplicasReady and Ready, all for the generation that was read."""
    replicas, ready = _replicas(observed, counters, blockers)
    return (
        _state(observed, conditions.AVAILABLE, *_available(observed, counters, blockers)),
        _state(observed, conditions.REPLICAS_READY, *replicas),
        _state(observed, conditions.READY, *ready),
    )


def _state(observed: ObservedDeployment, kind: str, is_true: bool, cause: Blocker) -> Statement:
    status: Literal["True", "False"] = "True" if is_true else "False"
    return Statement(kind, status, cause.reason, cause.message, observed.metadata.generation)


def _available(
    observed: ObservedDeployment, counters: Counters, blockers: tuple[Blocker, ...]
) -> tuple[bool, Blocker]:
    # An Instance may still read as ready while the order is on its way to it.
    if counters.ready and not observed.is_suspended:
        message = f"{counters.ready}/{counters.replicas} instances are ready"
        return True, Blocker(reasons.STABLE_INSTANCE_FOUND, message)
    return False, conditions.summarise(blockers) or blockers[-1]


def _replicas(
    observed: ObservedDeployment, counters: Counters, blockers: tuple[Blocker, ...]
) -> tuple[tuple[bool, Blocker], tuple[bool, Blocker]]:
    """ReplicasReady and Ready, first match."""
    hold = describe_hold(observed.metadata)
    if hold:
        blocked = (False, Blocker(reasons.DELETION_BLOCKED, f"Deployment is being deleted; {hold}"))
        return blocked, blocked
    if counters.is_converged and not observed.is_suspended:
        message = f"{counters.ready}/{counters.desired} replicas available"
        both = (True, Blocker(reasons.REPLICAS_AVAILABLE, message))
        return both, both
    worst = conditions.summarise(blockers)
    if worst is not None and worst.rank >= LASTING:
        return (False, worst), (False, worst)
    held = find_held(observed)
    if held:
        count_of = f"{len(held)} of {counters.desired} desired replicas are pending quota"
        pending = Blocker(reasons.QUOTA_NOT_GRANTED, f"{count_of}: {held[0].quota.message}")
        if any(one.quota.reason == reasons.QUOTA_EXCEEDED for one in held):
            return (False, Blocker(reasons.QUOTA_EXCEEDED, count_of)), (False, pending)
        return (False, pending), (False, pending)
    waits = _waits_for(observed, counters, blockers)
    return (False, waits), (False, waits)


def _waits_for(
    observed: ObservedDeployment, counters: Counters, blockers: tuple[Blocker, ...]
) -> Blocker:
    network = next((one for one in blockers if one.rank == ABOUT_NETWORK), None)
    if network is not None:
        return network
    if has_stale_slot(observed) or (
        are_all_ready(observed) and counters.updated < counters.desired
    ):
        message = f"{counters.updated} of {counters.desired} replicas run the current template"
    else:
        message = f"{counters.ready} of {counters.desired} replicas are ready"
    return Blocker(reasons.INSTANCES_PROVISIONING, message)
