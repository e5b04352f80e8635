"""Links between a process and its planes, which can be cut, slowed and healed.

An outage has a beginning and an end and breaks open watches, and refused connections look different
from lost packets. Scenarios control the link.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import NoReturn

from compute_sim_planes.request_address import Address


class LinkState(StrEnum):
    """What happens to requests on a link."""

    UP = "up"
    # Connections are refused, open ones are reset.
    REFUSED = "refused"
    # Packets are lost: no response, no error, open watches become silent.
    SILENT = "silent"


async def hang() -> NoReturn:
    """Waits for a response that never arrives, until cancelled."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("a future without a result was resolved")


class Link:
    """The link from one process to one plane."""

    def __init__(self) -> None:
        self.reads = LinkState.UP
        self.writes = LinkState.UP
        self.delay = timedelta()
        self._listeners: dict[Callable[[], None], None] = {}

    def cut(
        self, state: LinkState = LinkState.REFUSED, *, reads: bool = True, writes: bool = True
    ) -> None:
        """Cut the link for reads, writes or both."""
        if reads:
            self.reads = state
        if writes:
            self.writes = state
        self._notify()

    def slow(self, delay: timedelta) -> None:
        """Delay every request."""
        self.delay = delay

    def heal(self) -> None:
        """Restore the link without delay, and deliver events that were held by silent watches."""
        self.reads = self.writes = LinkState.UP
        self.delay = timedelta()
        self._notify()

    async def let_pass(self, address: Address) -> None:
        """Returns when a request may proceed; otherwise raises or hangs."""
        if self.delay:
            await asyncio.sleep(self.delay.total_seconds())
        state = self.writes if address.is_write else self.reads
        if state is LinkState.REFUSED:
            raise ConnectionRefusedError(f"connecting to plane {address.plane!r}: refused")
        if state is LinkState.SILENT:
            await hang()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` on every change of state; the returned function stops that."""
        self._listeners[listener] = None

        def forget() -> None:
            self._listeners.pop(listener, None)

        return forget

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()
