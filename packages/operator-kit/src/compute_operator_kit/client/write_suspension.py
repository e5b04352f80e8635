"""The write suspension of one plane: whether its project refuses every create and update.

Milo answers 403 with the cause `ProjectSuspended` to every write into a suspended project, status
and Events included (suspension.md 1). Without this state each key of the project would send its
writes again and again. After the first refusal only a probe is sent: one write per permission.

```
open ── refused ──► suspended ── permit_probe ──► probing ── accepted ──► open
                        ▲                            │
                        └──────────── refused ───────┘
```

Deletes and updates of objects that are being deleted are exempt and never pass here. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class _State(StrEnum):
    OPEN = "open"
    SUSPENDED = "suspended"
    PROBING = "probing"  # the next write may be sent


class WriteSuspension:
    """The state of one plane, shared by all its clients."""

    def __init__(self) -> None:
        self._state = _State.OPEN
        self._listeners: list[Callable[[], None]] = []

    @property
    def is_suspended(self) -> bool:
        """The last write was refused, and no probe was accepted since."""
        return self._state is not _State.OPEN

    @property
    def has_permit(self) -> bool:
        """The next write is sent as the probe."""
        return self._state is _State.PROBING

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls back when `is_suspended` changes; the listener must not raise or wait."""
        self._listeners.append(listener)

    def mute(self) -> None:
        """Drops all listeners, so that a disengaged plane can be freed."""
        self._listeners.clear()

    def permit_probe(self) -> None:
        """Lets one write through."""
        if self._state is _State.SUSPENDED:
            self._state = _State.PROBING

    def take_permit(self) -> bool:
        """Whether a write may be sent although the project is suspended; the permit is used up."""
        if self._state is not _State.PROBING:
            return False
        self._state = _State.SUSPENDED
        return True

    def refused(self) -> None:
        """The project refused a write."""
        self._change(_State.SUSPENDED)

    def answered(self, status: int) -> None:
        """The probe was answered without that refusal: an accepted write ends the suspension; any
        other answer (a conflict, a full server) says nothing about it, and the next write probes.
        """
        self._change(_State.OPEN if status < 300 else _State.PROBING)

    def _change(self, after: _State) -> None:
        was_suspended, self._state = self.is_suspended, after
        if was_suspended is not self.is_suspended:
            for listener in tuple(self._listeners):
                listener()
