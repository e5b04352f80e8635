"""One client's way to Milo, taken apart by plane.

A client of Milo has one address for all planes; whoever cuts, slows or records one of them needs a
transport per plane with plain paths. What is put between sees those; the client notices nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from compute_sim_planes.api_server.transport import Answer, Transport
from compute_sim_planes.milo.paths import parse_target, project_path
from compute_sim_planes.milo.planes import ROOT

# The transport of one plane (a project's id, `ROOT`), and the one to use instead.
Wrap: TypeAlias = Callable[[str, Transport], Transport]


class ByProject:
    """A transport with something between it and each plane."""

    def __init__(self, inner: Transport, wrap: Wrap) -> None:
        self._inner = inner
        self._wrap = wrap
        self._planes: dict[str, Transport] = {}

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        asked = parse_target(target)
        plane = self._at(asked.project or ROOT)
        return await plane.request(method, asked.path, headers, body)

    def _at(self, project: str) -> Transport:
        found = self._planes.get(project)
        if found is None:
            prefix = project_path(project) if project else ""
            found = self._planes[project] = self._wrap(project, _Under(self._inner, prefix))
        return found


class _Under:
    """A plane behind its address, as a plane of its own."""

    def __init__(self, inner: Transport, prefix: str) -> None:
        self._inner = inner
        self._prefix = prefix

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        return await self._inner.request(method, self._prefix + target, headers, body)
