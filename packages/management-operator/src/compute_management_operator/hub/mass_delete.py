"""The event and the wait of a removal that the mass-delete guard holds back (faults.md D9). Pure.

Without the event a project restored empty looks, for a minute, like an operator that has stopped
removing; without the wait the second count never happens.
"""

from __future__ import annotations

from collections.abc import Iterator

from compute_api_types import reasons
from compute_operator_kit.controller.mass_delete import RemovalHeld
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.intents.intents import Intent, RecordEvent, RequeueAfter


def hold_removal(
    key: ObjectKey, held: RemovalHeld, operator: ObjectKey | None, action: str, what: str
) -> Iterator[Intent]:
    """Once per count an event on the operator's own Deployment, and the wait for the next count.

    `what` names the objects and why they seem orphaned.
    """
    if held.is_news and operator is not None:
        message = (
            f"{held.missing} of {held.total} {what}; they are removed when a second look agrees"
        )
        yield RecordEvent(
            operator, Uid(""), reasons.MASS_DELETE_REFUSED, message, action, type="Warning"
        )
    yield RequeueAfter(key, reasons.MASS_DELETE_REFUSED, held.wait)
