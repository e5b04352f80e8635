"""Objects that a test applies to shared planes and deletes again.

Objects that existed before, such as CRDs of the stack, stay.
"""

from __future__ import annotations

from collections.abc import Iterable

from compute_sim_planes.json_types import JsonObject
from e2e.harness.access.client import PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.stack.stack import RealPlanes


class Installation:
    """All objects that were created by applying them, in order."""

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
        """Also deletes an object that a controller creates from what was applied."""
        self._made.append((plane, path))

    async def undo(self) -> None:
        """Deletes them in reverse order, so that a namespace is deleted after its objects."""
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
