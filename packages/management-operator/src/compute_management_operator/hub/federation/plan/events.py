"""Warning events of federation, recorded once per situation. Pure.

A situation may last for hours and is reconciled every minute: without the memory of the wait
tracker, each reconcile would record the event again.
"""

from __future__ import annotations

from typing import Final

from compute_management_operator.hub.federation.observe import ObservedDeployment
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.intents.intents import RecordEvent

ACTION: Final = "FederatingDeployment"


def warn_once(
    seen: ObservedDeployment, uid: Uid, reason: str, message: str
) -> tuple[RecordEvent, ...]:
    """A Warning on the deployment when a situation begins; the plan must wait for `reason` too."""
    if reason in seen.known.since:
        return ()
    return (RecordEvent(seen.key, uid, reason, message, ACTION, type="Warning"),)
