"""How long a pass waits for what, and how a situation is told once. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_management_operator.federation.observe import Seen
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import Uid

ACTION: Final = "FederatingDeployment"
# Something brings us back by an event; this is only in case that one is lost.
SAFETY: Final = timedelta(seconds=30)
# Nothing but a change helps: as long as a resync.
HOLD: Final = timedelta(minutes=30)
# Identity is looked at again by itself: a person may have put it right without an event for us.
RETRY_IDENTITY: Final = timedelta(seconds=60)
STEP: Final = timedelta(seconds=1)  # management.md 4, steps 5 and 8: "1 s steps"


def tell_once(seen: Seen, uid: Uid, reason: str, message: str) -> tuple[Emit, ...]:
    """A Warning on the deployment when a situation begins; the plan must wait for `reason` too."""
    if reason in seen.known.since:
        return ()
    return (Emit(seen.key, uid, reason, message, ACTION, type="Warning"),)
