"""What the writer remembers between passes: since when a difference waits, and which ones no write
removes.

A *provisional* difference ("on the way") may wait a moment for the next one to join it; the moment
is counted from when the difference first arose, so a stream of changes cannot put it off for ever.
A *residue* is what is left of a difference after our own write was acknowledged: an older server
pruned or defaulted it, and sending it again would never end. A *refusal* is an intent the plane has
just said no to: asked again for another reason a moment later, it is not sent again. Pure; time is
an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from compute_operator_kit.clock import ZERO
from compute_operator_kit.errors import RejectedError
from compute_operator_kit.intents import Intent
from compute_operator_kit.keys import ObjectKey


class Part(StrEnum):
    """Which part of an object a difference is in: the two are written by different requests."""

    OBJECT = "object"
    STATUS = "status"


# Far longer than any difference is held.
FORGOTTEN_AFTER: Final = timedelta(minutes=1)
FORGETTING_FROM: Final = 1024
# Long enough for what a refusal itself sets off (our status, a held one) to have come and gone;
# short enough that whatever else wakes the key is not kept waiting.
REFUSED_FOR: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Refused:
    """An intent a plane said no to, and until when it is not asked again."""

    intent: Intent
    error: RejectedError
    until: timedelta


class Memory:
    """Of one writer."""

    def __init__(self) -> None:
        self._refused: dict[tuple[ObjectKey, type[Intent]], Refused] = {}
        self._since: dict[tuple[ObjectKey, Part], timedelta] = {}
        self._forgetting_from = FORGETTING_FROM
        self._residues: dict[tuple[ObjectKey, Part], bytes] = {}

    def __len__(self) -> int:
        return len(self._since) + len(self._residues) + len(self._refused)

    def hold(self, key: ObjectKey, part: Part, settle: timedelta, now: timedelta) -> timedelta:
        """How much longer a provisional difference waits; zero when it must go out."""
        since = self._since.get((key, part), now)
        if now - since > FORGOTTEN_AFTER:
            since = now  # what waited then is long gone, and nobody came to say so
        self._since[(key, part)] = since
        self._drop_forgotten(now)
        return max(ZERO, since + settle - now)

    def _drop_forgotten(self, now: timedelta) -> None:
        """Differences that vanished with their object; they must not pile up."""
        if len(self._since) > self._forgetting_from:
            oldest = now - FORGOTTEN_AFTER
            self._since = {at: since for at, since in self._since.items() if since >= oldest}
            # In a rush all of them are young: who looked at every one does not come back for each.
            self._forgetting_from = max(FORGETTING_FROM, 2 * len(self._since))

    def settle(self, key: ObjectKey, part: Part) -> None:
        """There is no difference any more, or it was sent."""
        self._since.pop((key, part), None)

    def keep_residue(self, key: ObjectKey, part: Part, mark: bytes) -> None:
        """Our write was acknowledged and this difference is still there."""
        self._residues[(key, part)] = mark

    def drop_residue(self, key: ObjectKey, part: Part) -> None:
        self._residues.pop((key, part), None)

    def is_residue(self, key: ObjectKey, part: Part, mark: Callable[[], bytes]) -> bool:
        """Whether exactly this difference was left after our last write; asked before every write,
        so the mark is only computed where there is something to compare it with.
        """
        found = self._residues.get((key, part))
        return found is not None and found == mark()

    def refuse(self, intent: Intent, error: RejectedError, now: timedelta) -> None:
        """The plane said no to this."""
        self._refused = {at: found for at, found in self._refused.items() if found.until > now}
        self._refused[(intent.key, type(intent))] = Refused(intent, error, now + REFUSED_FOR)

    def find_refused(self, intent: Intent) -> Refused | None:
        """The refusal of exactly this intent; it says until when it counts."""
        if not self._refused:
            return None  # nearly always, and every intent is asked about
        found = self._refused.get((intent.key, type(intent)))
        return found if found is not None and found.intent == intent else None

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        self._since = {at: since for at, since in self._since.items() if not is_gone(at[0])}
        self._residues = {at: mark for at, mark in self._residues.items() if not is_gone(at[0])}
        self._refused = {at: found for at, found in self._refused.items() if not is_gone(at[0])}
