"""Condition `Available` of a suspended Instance, which is otherwise the provider's alone. Pure
(suspension.md 4).

```
transition into suspension        written
another text, 10 s later          written once more: a provider that missed the order has it now
another text after that           left to the provider, one event
resume, still `Suspended`         Starting; the provider's again
```

What is remembered lasts as long as the process. A new process writes nothing again: two writers of
one condition must not overwrite each other for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance_facts import InstanceState
from compute_cell_operator.planes import DEPLOYMENT
from compute_operator_kit.core.clock import ZERO, age_of
from compute_operator_kit.core.errors import ReconcileError, RejectedError
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.intents.intents import RecordEvent, RequeueAfter, SetStatus
from compute_operator_kit.intents.outcomes import Applied, Effect

REWRITE_AFTER: Final = timedelta(seconds=10)
MOST_WRITES: Final = 2
SUSPENDING: Final = "SuspendingInstance"
NOT_SERVING: Final = "Instance is suspended and not serving traffic."
RESUMED: Final = "Instance is being resumed"


@dataclass(frozen=True, slots=True)
class SuspensionWrites:
    """What this process did for one suspension of one Instance."""

    uid: Uid
    writes: int = 0  # of `Available`
    since: datetime | None = None  # the first of them
    is_reported: bool = False  # that it failed


def state_available(
    observed: ObservedInstance, memory: SuspensionWrites | None, now: datetime
) -> Statement | None:
    """`Available` where it is to be written; None where it is the provider's."""
    instance = observed.instance
    generation = instance.metadata.generation
    if instance.metadata.is_deleting:
        return None
    if observed.is_suspended:
        # A server of an older release prunes the member that shows the transition.
        is_new = not instance.is_suspended and memory is None
        is_due = is_new or _is_rewrite_due(instance, memory, now)
        if not is_due or is_shown(instance):
            return None
        return Statement(conditions.AVAILABLE, "False", reasons.SUSPENDED, NOT_SERVING, generation)
    available = _available(instance)
    if instance.is_suspended and available is not None and available.reason == reasons.SUSPENDED:
        return Statement(conditions.AVAILABLE, "False", reasons.STARTING, RESUMED, generation)
    return None


def is_shown(instance: InstanceState) -> bool:
    """Whether `Available` already reads as suspended, by our words or a provider's."""
    stored = _available(instance)
    return stored is not None and (stored.status, stored.reason, stored.message) == (
        "False",
        reasons.SUSPENDED,
        NOT_SERVING,
    )


def _available(instance: InstanceState) -> ReportedCondition | None:
    return conditions.find(instance.conditions, conditions.AVAILABLE)


def _is_rewrite_due(
    instance: InstanceState, memory: SuspensionWrites | None, now: datetime
) -> bool:
    left = _rewrite_in(instance, memory, now)
    return left is not None and left <= ZERO


def _rewrite_in(
    instance: InstanceState, memory: SuspensionWrites | None, now: datetime
) -> timedelta | None:
    """The time until `Available` may be written once more; None where it may not."""
    if memory is None or memory.since is None or memory.writes >= MOST_WRITES:
        return None
    if is_shown(instance):
        return None
    return REWRITE_AFTER - age_of(memory.since, now)


def restate(instance: InstanceState, statement: Statement | None) -> InstanceState:
    """The Instance as it reads once the statement is stored."""
    if statement is None:
        return instance
    stated = ReportedCondition(
        statement.type,
        statement.status,
        statement.reason,
        statement.message,
        statement.observed_generation or 0,
    )
    others = (one for one in instance.conditions if one.type != statement.type)
    return replace(instance, status=replace(instance.status, conditions=(*others, stated)))


def plan_wait(
    observed: ObservedInstance, memory: SuspensionWrites | None, now: datetime
) -> Iterator[RequeueAfter]:
    instance = observed.instance
    if not observed.is_suspended or instance.metadata.is_deleting:
        return
    left = _rewrite_in(instance, memory, now)
    if left is not None and left > ZERO:
        yield RequeueAfter(instance.key, reasons.SUSPENDED, left)


def report_overwritten(
    observed: ObservedInstance, memory: SuspensionWrites | None
) -> Iterator[RecordEvent]:
    """The provider wrote `Available` again after our last write."""
    instance = observed.instance
    if not observed.is_suspended or instance.metadata.is_deleting or is_shown(instance):
        return
    if memory is not None and memory.writes >= MOST_WRITES and not memory.is_reported:
        message = (
            f'condition Available of Instance "{instance.key.name}" is overwritten by its provider '
            "and is left to it"
        )
        yield from _warn(instance, message)


def report_refused(observed: ObservedInstance, applied: Applied) -> Iterator[RecordEvent]:
    """The status that suspends the Instance was refused for good."""
    if not observed.is_suspended or observed.instance.is_suspended:
        return
    for outcome in applied.outcomes:
        if isinstance(outcome.intent, SetStatus) and isinstance(outcome.error, RejectedError):
            name, cause = observed.instance.key.name, _describe(outcome.error)
            message = f'status of Instance "{name}" could not be written: {cause}'
            yield from _warn(observed.instance, message)
            return


def _describe(error: ReconcileError) -> str:
    """Never the server's own text, which may repeat field values (faults.md G10)."""
    if error.answer is None:
        return error.message
    return f"the API server answered {error.answer.status} {error.answer.reason}".rstrip()


def _warn(instance: InstanceState, message: str) -> Iterator[RecordEvent]:
    owner = instance.metadata.controller
    if owner is None or not owner.name:
        return
    key = ObjectKey(instance.key.plane, DEPLOYMENT, instance.key.namespace, owner.name)
    yield RecordEvent(
        key,
        owner.uid,
        reasons.PAUSE_FAILED,
        message,
        SUSPENDING,
        type="Warning",
        related=instance.key,
        related_uid=instance.metadata.uid,
    )


def remember(
    observed: ObservedInstance, memory: SuspensionWrites | None, applied: Applied, now: datetime
) -> SuspensionWrites | None:
    """What is remembered after a reconcile; None once the Instance is not suspended."""
    instance = observed.instance
    uid = instance.metadata.uid
    if not observed.is_suspended:
        return None
    was = memory if memory is not None and memory.uid == uid else None
    is_written = not is_shown(instance) and any(
        isinstance(outcome.intent, SetStatus)
        and outcome.effect is Effect.WRITTEN
        and _shows(outcome.intent)
        for outcome in applied.outcomes
    )
    if not is_written:
        return was
    kept = was or SuspensionWrites(uid)
    return replace(kept, writes=kept.writes + 1, since=kept.since or now)


def _shows(written: SetStatus) -> bool:
    entries = written.status.get("conditions")
    return isinstance(entries, list) and any(
        isinstance(entry, dict)
        and entry.get("type") == conditions.AVAILABLE
        and entry.get("reason") == reasons.SUSPENDED
        for entry in entries
    )
