"""The memory of the applier between reconciles: deferred, irremovable and refused differences.

A *provisional* difference may be deferred so that the next one joins it; the time counts from when
it first arose, so that a stream of changes cannot defer it forever. A *residue* is a difference
that remains after an acknowledged write, because an older server pruned or defaulted the field;
sending it again would never end. A *refusal* is an intent that the plane has just rejected and that
is not sent again for a moment. Pure; time is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.errors import RejectedError
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.intents.intents import Intent


class ObjectSection(StrEnum):
    """The part of an object with a difference: each has its own request."""

    OBJECT = "object"
    STATUS = "status"


# Far longer than any write is deferred.
FORGOTTEN_AFTER: Final = timedelta(minutes=1)
FORGET_FROM: Final = 1024
# Longer than the reconciles that a refusal itself causes (its status, a deferred write); short
# enough not to delay a reconcile for another event.
REFUSED_FOR: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """An intent that a plane rejected, and until when it is not sent again."""

    intent: Intent
    error: RejectedError
    until: timedelta


class WriteMemory:
    """Deferrals, residues and refusals of one controller."""

    def __init__(self) -> None:
        self._refused: dict[tuple[ObjectKey, type[Intent]], RefusedWrite] = {}
        self._since: dict[tuple[ObjectKey, ObjectSection], timedelta] = {}
        self._forget_from = FORGET_FROM
        self._residues: dict[tuple[ObjectKey, ObjectSection], bytes] = {}

    def __len__(self) -> int:
        return len(self._since) + len(self._residues) + len(self._refused)

    def defer(
        self, key: ObjectKey, section: ObjectSection, defer_for: timedelta, now: timedelta
    ) -> timedelta:
        """How much longer a provisional difference is deferred; zero when it must be sent."""
        since = self._since.get((key, section), now)
        if now - since > FORGOTTEN_AFTER:
            since = now  # of a former difference, which ended without a write
        self._since[(key, section)] = since
        self._drop_forgotten(now)
        return max(ZERO, since + defer_for - now)

    def _drop_forgotten(self, now: timedelta) -> None:
        """Drops differences of objects that are gone, or they pile up."""
        if len(self._since) > self._forget_from:
            oldest = now - FORGOTTEN_AFTER
            self._since = {at: since for at, since in self._since.items() if since >= oldest}
            # If all are recent, the next check is at twice the number, not at every write.
            self._forget_from = max(FORGET_FROM, 2 * len(self._since))

    def end_deferral(self, key: ObjectKey, section: ObjectSection) -> None:
        """The difference is gone, or it was sent."""
        self._since.pop((key, section), None)

    def set_residue(self, key: ObjectKey, section: ObjectSection, mark: bytes) -> None:
        """The write was acknowledged, and this difference remains."""
        self._residues[(key, section)] = mark

    def drop_residue(self, key: ObjectKey, section: ObjectSection) -> None:
        self._residues.pop((key, section), None)

    def is_residue(self, key: ObjectKey, section: ObjectSection, mark: Callable[[], bytes]) -> bool:
        """Whether exactly this difference remained after the last write; `mark` is only computed if
        there is a residue, because this is called before every write.
        """
        residue = self._residues.get((key, section))
        return residue is not None and residue == mark()

    def refuse(self, intent: Intent, error: RejectedError, now: timedelta) -> None:
        """The plane rejected the intent."""
        self._refused = {at: one for at, one in self._refused.items() if one.until > now}
        self._refused[(intent.key, type(intent))] = RefusedWrite(intent, error, now + REFUSED_FOR)

    def find_refused(self, intent: Intent) -> RefusedWrite | None:
        """The refusal of exactly this intent; it may have ended."""
        if not self._refused:
            return None  # nearly always, and this is called for every intent
        refused = self._refused.get((intent.key, type(intent)))
        return refused if refused is not None and refused.intent == intent else None

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        self._since = {at: since for at, since in self._since.items() if not is_gone(at[0])}
        self._residues = {at: mark for at, mark in self._residues.items() if not is_gone(at[0])}
        self._refused = {at: one for at, one in self._refused.items() if not is_gone(at[0])}
