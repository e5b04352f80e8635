"""What an administrator applies to planes that others use too, and takes away again.

What was there before stays: CRDs, for one, are part of the stack.
"""

from __future__ import annotations

from collections.abc import Iterable

from compute_sim_planes.json_types import JsonObject
from e2e.planes.client import PlaneClient
from e2e.planes.stack import RealPlanes
from e2e.planes.waiting import until


class Installation:
    """Everything that was made by applying it, in that order."""

    def __init__(self, planes: RealPlanes) -> None:
        self._planes = planes
        self._made: list[tuple[str, str]] = []

    async def apply(self, plane: str, documents: Iterable[JsonObject]) -> None:
        async with self._planes.plane(plane).client() as client:
            for document in documents:
                path = await client.path_of(document)
                if await client.find(path) is None:
                    self._made.append((plane, path))
                await client.apply(document)

    def adopt(self, plane: str, path: str) -> None:
        """Something that somebody makes of what was applied, and that does not go with it."""
        self._made.append((plane, path))

    async def undo(self) -> None:
        """Takes it away, the last first, so that nothing loses the namespace it lies in."""
        while self._made:
            plane, path = self._made.pop()
            async with self._planes.plane(plane).client() as client:
                await self._delete(client, path)

    async def _delete(self, client: PlaneClient, path: str) -> None:
        if await client.find(path) is None:
            return
        await client.delete(path)

        async def is_gone() -> bool:
            return await client.find(path) is None

        await until(f"{path} to go", is_gone, check=self._planes.check)
