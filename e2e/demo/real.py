"""The demo on real planes: the stack and operators of the scenarios, for one story.

Needs the planes' programs (`./dev planes`). The stack is deleted as a whole at the end, so no
object is deleted by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from e2e.backends.real.backend import RealBackend
from e2e.backends.real.environment import RealEnvironment
from e2e.demo.backend import CELLS, DemoError
from e2e.demo.environment import ProgressReport
from e2e.world.port import HUB, Cell, Needs, PlaneRequest, PlaneResponse, ProjectNamespace

NEEDS: Final = Needs(projects=2, cells=CELLS, has_quota=True, is_alone=True)


class DemoRealBackend(RealBackend):
    """A backend that does not delete its objects, because the stack ends with it."""

    async def close_clients(self) -> None:
        await self.users.close()


class RealDemoEnvironment:
    """The stack of one demo; `async with` starts and stops it."""

    pace = 4.0

    def __init__(self, report: ProgressReport) -> None:
        self._report = report
        self._environment = RealEnvironment()
        self._opened: DemoRealBackend | None = None

    @property
    def project_namespaces(self) -> Sequence[ProjectNamespace]:
        return self._backend.project_namespaces

    @property
    def logs(self) -> Path:
        return self._environment.planes.run_folder.path / "logs"

    @property
    def kubeconfig(self) -> Path:
        return Path(self._environment.planes.kubeconfig)

    @property
    def _backend(self) -> DemoRealBackend:
        if self._opened is None:
            raise DemoError("asking the real planes: they are not up")
        return self._opened

    # --- life cycle ------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._report(0, 2, "planes: etcd, Kubernetes, Karmada, Milo")
        opening = asyncio.create_task(asyncio.to_thread(self._environment.open))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            # A start cannot be cancelled halfway: wait for it, then stop everything.
            with suppress(Exception):
                await opening
                await asyncio.to_thread(self._environment.close)
            raise
        try:
            self._report(1, 2, "operators: management, DFW, ORD")
            self._opened = DemoRealBackend(self._environment, "demo", NEEDS)
            await self._opened.open()
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
            self._environment.failure = failure  # keeps the logs
        if self._opened is not None:
            await self._opened.close_clients()
        await asyncio.to_thread(self._environment.close)

    def check(self) -> None:
        self._environment.planes.check()
        for name, replicas in self._environment.replicas.items():
            if replicas.deaths:
                raise DemoError(f"operator {name}: {replicas.deaths[-1]}")

    # --- requests --------------------------------------------------------------------------------

    async def send(self, plane: str, user: str, call: PlaneRequest) -> PlaneResponse:
        try:
            return await self._backend.send(plane, user, call)
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
        return [HUB, *(place.project for place in self.project_namespaces)]
