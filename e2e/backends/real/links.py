"""Links between operators and planes, which a scenario cuts, slows or heals.

```
operator ── link ── home, cell, hub          TCP; cut and healed here
operator ── gateway ── root, projects        one address; the gateway applies faults per user
API server ── link ── admission webhook
Karmada ── link ── member
```
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

from e2e.harness.gateway.fault_routes import RouteFault, write_route_faults
from e2e.harness.planes.identities import MANAGEMENT as MANAGEMENT_IDENTITY
from e2e.harness.planes.identities import a_cell_operator
from e2e.harness.processes.links import Link
from e2e.harness.stack.milo import FAULT_ROUTES
from e2e.harness.stack.stack import RealPlanes
from e2e.world.port import HOME, HUB, MANAGEMENT, ROOT


class Links:
    """The links of one stack; used on the background loop only."""

    def __init__(self, planes: RealPlanes, cells: tuple[str, ...]) -> None:
        self._planes = planes
        self._cells = cells
        self._stack = AsyncExitStack()
        self._links: dict[tuple[str, str], Link] = {}
        self._members: dict[str, Link] = {}
        self._faults: dict[tuple[str, str], RouteFault] = {}
        self._webhooks: dict[str, Link] = {}

    async def open(self, webhooks: Mapping[str, tuple[str, int]]) -> None:
        """`webhooks` are the addresses of the admission webhook, by the plane that calls it."""
        pairs = [(MANAGEMENT, HOME), (MANAGEMENT, HUB)]
        pairs += [pair for cell in self._cells for pair in ((cell, cell), (cell, HUB))]
        for operator, plane in pairs:
            link = self._planes.link(plane)
            self._links[operator, plane] = await self._stack.enter_async_context(link)
        for cell in self._cells:
            link = self._planes.link(cell)
            self._members[cell] = await self._stack.enter_async_context(link)
        for plane, (address, port) in webhooks.items():
            # An address that the calling API server can reach, which may run inside a cluster.
            here = self._planes.plane(plane).runtime.settings.address
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

    # --- faults ----------------------------------------------------------------------------------

    async def cut(self, operator: str, plane: str) -> None:
        if link := self._links.get((operator, plane)):
            await link.cut()
        else:
            self._spoil(operator, plane, is_cut=True)

    async def slow(self, operator: str, plane: str, delay: timedelta) -> None:
        if link := self._links.get((operator, plane)):
            link.latency = delay / 2  # in each direction
        else:
            self._spoil(operator, plane, delay=delay)

    async def heal(self, operator: str, plane: str) -> None:
        if link := self._links.get((operator, plane)):
            link.latency = timedelta()
            await link.heal()
        else:
            self._faults.pop((operator, plane), None)
            self._update_gateway()

    async def heal_all(self) -> None:
        """Removes all faults that a scenario left."""
        for link in (*self._links.values(), *self._members.values(), *self._webhooks.values()):
            link.latency = timedelta()
            await link.heal()
        if self._faults:
            self._faults.clear()
            self._update_gateway()

    def _spoil(
        self, operator: str, plane: str, *, is_cut: bool = False, delay: timedelta = timedelta()
    ) -> None:
        is_management = operator == MANAGEMENT
        user = MANAGEMENT_IDENTITY if is_management else a_cell_operator(operator)
        self._faults[operator, plane] = RouteFault(
            user=user.user,
            project="" if plane == ROOT else plane,
            is_cut=is_cut,
            delay_seconds=delay.total_seconds(),
        )
        self._update_gateway()

    def _update_gateway(self) -> None:
        write_route_faults(self._fault_file, self._faults.values())

    @property
    def _fault_file(self) -> Path:
        return self._planes.run_folder.of_plane(ROOT, FAULT_ROUTES)
