"""Protocols of a plane's servers, which are processes of the stack or parts of a cluster."""

from __future__ import annotations

from typing import Protocol


class RestartableServer(Protocol):
    """A server that can be restarted."""

    async def restart(self) -> None:
        """Restarts it at the same address with the same data."""
        ...


class RunningServer(RestartableServer, Protocol):
    """A server that runs from `up` to `stop`; see `process.ManagedProcess`."""

    @property
    def name(self) -> str: ...

    def start(self) -> None:
        """Starts it without waiting."""
        ...

    async def up(self) -> None:
        """Starts it and waits until it serves."""
        ...

    async def stop(self) -> None: ...

    async def crash(self) -> None:
        """Kills it, as a power failure would."""
        ...
