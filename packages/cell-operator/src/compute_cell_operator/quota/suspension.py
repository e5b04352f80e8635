"""Slots of a suspended project, which refuses new claims: one probe per minute serves all of them.

Milo refuses every create and update in a suspended project (suspension.md 1); reads and releases
pass. Without this state every gated Instance would request its claim again and again. A slot that
was refused waits; the probe is the request of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from compute_operator_kit.core.keys import ObjectKey

PROBE_EVERY: Final = timedelta(seconds=60)
PROBE_JITTER: Final = 0.2


class ClaimSuspension:
    """The suspension of one project; `on_resume` gets the slots that waited for its end."""

    def __init__(self, on_resume: Callable[[tuple[ObjectKey, ...]], None]) -> None:
        self._on_resume = on_resume
        self._waiting: dict[ObjectKey, None] = {}
        self._has_permit = False
        self.is_suspended = False
        self.is_probed = False  # a task gives permits

    def refuse(self, key: ObjectKey) -> None:
        """The project refused a claim of this slot, or would have."""
        self.is_suspended = True
        self._waiting[key] = None

    def holds(self, key: ObjectKey) -> bool:
        """Whether a slot waits, so that its reconcile sends nothing."""
        return self.is_suspended and key in self._waiting and not self._has_permit

    def is_waiting(self, key: ObjectKey) -> bool:
        return key in self._waiting

    def take_permit(self) -> bool:
        """Whether a claim may be requested or adopted now; a permit is used up."""
        if not self.is_suspended:
            return True
        has_permit, self._has_permit = self._has_permit, False
        return has_permit

    def permit(self) -> ObjectKey | None:
        """Permits one request, by the slot that has waited longest; None: none waits."""
        key = next(iter(self._waiting), None)
        if key is None:
            self.is_suspended = self._has_permit = False
            return None
        self._waiting[key] = self._waiting.pop(key)  # another one probes next time
        self._has_permit = True
        return key

    def accept(self) -> None:
        """The project accepted a write."""
        if self.is_suspended:
            self.resume()

    def resume(self) -> None:
        """The project accepts claims again, or shows that it does."""
        waiting, self._waiting = tuple(self._waiting), {}
        self.is_suspended = self._has_permit = False
        self._on_resume(waiting)

    def forget(self, key: ObjectKey) -> None:
        self._waiting.pop(key, None)


def derive_probe_delay(chance: float) -> timedelta:
    """The time between two probes, spread so that projects do not probe together."""
    return PROBE_EVERY * (1.0 + PROBE_JITTER * (2.0 * chance - 1.0))
