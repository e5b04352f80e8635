"""What a plane asks of whoever runs its servers: a process of ours, or a part of a cluster."""

from __future__ import annotations

from typing import Protocol


class Restartable(Protocol):
    """Something that others have begun, and that can be made to begin anew."""

    async def restart(self) -> None:
        """The same again, at the same address and with the same data."""
        ...


class Running(Restartable, Protocol):
    """Something that serves from `up` to `stop`; see `process.ManagedProcess`."""

    @property
    def name(self) -> str: ...

    def start(self) -> None:
        """Begins; nobody waits for it."""
        ...

    async def up(self) -> None:
        """Begins, and serves when this returns."""
        ...

    async def stop(self) -> None: ...

    async def crash(self) -> None:
        """As by the power switch."""
        ...
