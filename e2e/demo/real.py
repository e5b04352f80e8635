"""The demo's scene on real planes: the stack and the operators that scenarios run on, for one
story.

Needs the planes' programs (`./dev planes`). What the story leaves goes with the stack, so nothing
is cleared away object by object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from e2e.backends.port import HUB, Call, Cell, Needs, Place, Reply
from e2e.backends.real.backend import RealBackend
from e2e.backends.real.theatre import Theatre
from e2e.demo.scene import CELLS, DemoError
from e2e.demo.stage import Telling

NEEDS: Final = Needs(projects=2, cells=CELLS, has_quota=True, is_alone=True)


class Guest(RealBackend):
    """A backend that leaves without tidying: the house is pulled down behind it."""

    async def leave_house(self) -> None:
        await self.people.close()


class RealHouse:
    """See the module's text; `async with` brings it up and takes it down."""

    pace = 4.0

    def __init__(self, tell: Telling) -> None:
        self._tell = tell
        self._theatre = Theatre()
        self._guest: Guest | None = None

    @property
    def places(self) -> Sequence[Place]:
        return self._backend.places

    @property
    def logs(self) -> Path:
        return self._theatre.planes.run_folder.path / "logs"

    @property
    def kubeconfig(self) -> Path:
        return Path(self._theatre.planes.kubeconfig)

    @property
    def _backend(self) -> Guest:
        if self._guest is None:
            raise DemoError("asking the real planes: they are not up")
        return self._guest

    # --- life ------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._tell(0, 2, "planes: etcd, Kubernetes, Karmada, Milo")
        opening = asyncio.create_task(asyncio.to_thread(self._theatre.open))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            # A start cannot be taken back halfway; what is up can be taken down.
            with suppress(Exception):
                await opening
                await asyncio.to_thread(self._theatre.close)
            raise
        try:
            self._tell(1, 2, "operators: management, DFW, ORD")
            self._guest = Guest(self._theatre, "demo", NEEDS)
            await self._guest.open()
        except BaseException as failure:
            await self._close(failure)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, _: object
    ) -> None:
        await self._close(failure)

    async def _close(self, failure: BaseException | None) -> None:
        if isinstance(failure, Exception):
            self._theatre.failure = failure  # logs stay
        if self._guest is not None:
            await self._guest.leave_house()
        await asyncio.to_thread(self._theatre.close)

    def check(self) -> None:
        self._theatre.planes.check()
        for name, crew in self._theatre.crews.items():
            if crew.deaths:
                raise DemoError(f"operator {name}: {crew.deaths[-1]}")

    # --- the scene -------------------------------------------------------------------------------

    async def send(self, plane: str, who: str, call: Call) -> Reply:
        try:
            return await self._backend.send(plane, who, call)
        except AssertionError as failure:
            raise DemoError(str(failure)) from failure

    async def set_grant(self, project: str, instances: int) -> None:
        await self._backend.set_grant(project, instances)

    async def cut_off(self, cell: Cell) -> None:
        for plane in self._planes_of_a_cell():
            await self._backend.cut(cell.name, plane)
        await self._backend.cut_member(cell.name)

    async def bring_back(self, cell: Cell) -> None:
        for plane in self._planes_of_a_cell():
            await self._backend.heal(cell.name, plane)
        await self._backend.heal_member(cell.name)

    def _planes_of_a_cell(self) -> list[str]:
        return [HUB, *(place.project for place in self.places)]
