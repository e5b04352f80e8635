"""Events of federation, recorded once per situation. Pure.

A situation may last for hours and is reconciled every minute: without the memory of the wait
tracker, each reconcile would record the event again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from compute_api_types import reasons
from compute_api_types.conditions import Statement
from compute_management_operator.hub.federation.observe import ObservedDeployment
from compute_management_operator.hub.hearing.conditions import (
    is_unreachable,
    reachable_message,
)
from compute_management_operator.stored_status import StoredCondition
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import RecordEvent

ACTION: Final = "FederatingDeployment"


def warn_once(
    seen: ObservedDeployment, uid: Uid, reason: str, message: str
) -> tuple[RecordEvent, ...]:
    """A Warning on the deployment when a situation begins; the plan must wait for `reason` too."""
    if reason in seen.known.since:
        return ()
    return (RecordEvent(seen.key, uid, reason, message, ACTION, type="Warning"),)


def note_hearing(
    seen: ObservedDeployment,
    uid: Uid,
    before: Sequence[StoredCondition],
    after: Sequence[StoredCondition] | Sequence[Statement],
) -> Iterator[RecordEvent]:
    """When a city ceases or begins to be heard; none where the project accepts no status now."""
    if isinstance(seen.deployment, Absent) or seen.is_project_suspended:
        return
    city, was, is_now = seen.deployment.city_code, is_unreachable(before), is_unreachable(after)
    if is_now and not was:
        unknown = next(one for one in after if one.reason == reasons.CELL_UNREACHABLE)
        reason, message = reasons.CELL_UNREACHABLE, unknown.message
        yield RecordEvent(seen.key, uid, reason, message, ACTION, type="Warning")
    elif was and not is_now:
        message = reachable_message(city)
        yield RecordEvent(seen.key, uid, reasons.CELL_REACHABLE, message, ACTION)
