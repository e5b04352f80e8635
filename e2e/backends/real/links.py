"""Every way from an operator to a plane, and how a scenario spoils it.

```
operator ── link ── home, cell, hub          bytes, cut and healed here
operator ── gateway ── root, projects        one address: the gateway knows whose way is spoilt
API server ── link ── admission webhook
Karmada ── link ── member
```
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

from e2e.backends.port import HOME, HUB, MANAGEMENT, ROOT
from e2e.planes.gateway.ways import Spoilt, write_spoilt
from e2e.planes.identities import MANAGEMENT as MANAGEMENT_IDENTITY
from e2e.planes.identities import a_cell_operator
from e2e.planes.links import Link
from e2e.planes.milo import WAYS
from e2e.planes.stack import RealPlanes


class Links:
    """The links of one stack; opened and used backstage."""

    def __init__(self, planes: RealPlanes, cells: tuple[str, ...]) -> None:
        self._planes = planes
        self._cells = cells
        self._stack = AsyncExitStack()
        self._links: dict[tuple[str, str], Link] = {}
        self._members: dict[str, Link] = {}
        self._spoilt: dict[tuple[str, str], Spoilt] = {}
        self._webhooks: dict[str, Link] = {}

    async def open(self, webhooks: Mapping[str, tuple[str, int]]) -> None:
        """`webhooks` are where reviews are answered, by the plane that asks."""
        pairs = [(MANAGEMENT, HOME), (MANAGEMENT, HUB)]
        pairs += [pair for cell in self._cells for pair in ((cell, cell), (cell, HUB))]
        for operator, plane in pairs:
            link = self._planes.link(plane)
            self._links[operator, plane] = await self._stack.enter_async_context(link)
        for cell in self._cells:
            link = self._planes.link(cell)
            self._members[cell] = await self._stack.enter_async_context(link)
        for plane, (address, port) in webhooks.items():
            # Where the API server that asks can reach it, which may stand in a cluster.
            here = self._planes.plane(plane).site.ground.address
            link = Link(address, port, address=here)
            self._webhooks[plane] = await self._stack.enter_async_context(link)

    async def close(self) -> None:
        await self._stack.aclose()

    def to(self, operator: str, plane: str) -> Link:
        return self._links[operator, plane]

    def member(self, cell: str) -> Link:
        return self._members[cell]

    def webhook(self, plane: str) -> Link:
        return self._webhooks[plane]

    # --- spoiling --------------------------------------------------------------------------------

    async def cut(self, operator: str, plane: str) -> None:
        if link := self._links.get((operator, plane)):
            await link.cut()
        else:
            self._spoil(operator, plane, is_cut=True)

    async def slow(self, operator: str, plane: str, delay: timedelta) -> None:
        if link := self._links.get((operator, plane)):
            link.latency = delay / 2  # each way
        else:
            self._spoil(operator, plane, delay=delay)

    async def heal(self, operator: str, plane: str) -> None:
        if link := self._links.get((operator, plane)):
            link.latency = timedelta()
            await link.heal()
        else:
            self._spoilt.pop((operator, plane), None)
            self._tell_gateway()

    async def heal_all(self) -> None:
        """As after a scenario that left something spoilt."""
        for link in (*self._links.values(), *self._members.values(), *self._webhooks.values()):
            link.latency = timedelta()
            await link.heal()
        if self._spoilt:
            self._spoilt.clear()
            self._tell_gateway()

    def _spoil(
        self, operator: str, plane: str, *, is_cut: bool = False, delay: timedelta = timedelta()
    ) -> None:
        is_management = operator == MANAGEMENT
        user = MANAGEMENT_IDENTITY if is_management else a_cell_operator(operator)
        self._spoilt[operator, plane] = Spoilt(
            user=user.user,
            project="" if plane == ROOT else plane,
            is_cut=is_cut,
            delay_seconds=delay.total_seconds(),
        )
        self._tell_gateway()

    def _tell_gateway(self) -> None:
        write_spoilt(self._ways, self._spoilt.values())

    @property
    def _ways(self) -> Path:
        return self._planes.run_folder.of_plane(ROOT, WAYS)
