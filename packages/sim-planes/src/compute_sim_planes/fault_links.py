"""Links between a process and its planes, which can be cut, slowed and healed while both live on.

An outage is no single request: it has a beginning and an end, takes open watches with it, and looks
different from refused connections than from packets that vanish. Scenarios hold a link and decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import NoReturn

from compute_sim_planes.request_address import Address


class LinkState(StrEnum):
    """What happens to what is sent."""

    UP = "up"
    # Nobody listens: connections are refused, open ones are reset.
    REFUSED = "refused"
    # Packets vanish: nothing is answered, nothing is refused, open watches fall silent.
    SILENT = "silent"


async def hang() -> NoReturn:
    """Waits for an answer that never comes; ends only with the one who waits."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody answers a wait for nothing")


class Link:
    """One process's way to one plane."""

    def __init__(self) -> None:
        self.reads = LinkState.UP
        self.writes = LinkState.UP
        self.delay = timedelta()
        self._listeners: dict[Callable[[], None], None] = {}

    def cut(
        self, state: LinkState = LinkState.REFUSED, *, reads: bool = True, writes: bool = True
    ) -> None:
        """Cut the link, or one half of it: reads that fail while writes pass, or the reverse."""
        if reads:
            self.reads = state
        if writes:
            self.writes = state
        self._tell()

    def slow(self, delay: timedelta) -> None:
        """Every request takes so much longer."""
        self.delay = delay

    def heal(self) -> None:
        """Up, quick, and what vanished watches held back is delivered."""
        self.reads = self.writes = LinkState.UP
        self.delay = timedelta()
        self._tell()

    async def let_pass(self, address: Address) -> None:
        """Returns when a request may go on; raises or hangs when it may not."""
        if self.delay:
            await asyncio.sleep(self.delay.total_seconds())
        state = self.writes if address.is_write else self.reads
        if state is LinkState.REFUSED:
            raise ConnectionRefusedError(f"connecting to plane {address.plane!r}: refused")
        if state is LinkState.SILENT:
            await hang()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have open watches told of a change; the answer undoes it."""
        self._listeners[listener] = None

        def forget() -> None:
            self._listeners.pop(listener, None)

        return forget

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()
