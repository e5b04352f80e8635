"""A transport to Milo that is split by plane.

A client of Milo has one address for all planes; to cut, slow or record one of them, a transport per
plane with plain paths is needed. The client is unaffected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from compute_sim_planes.api_server.http.transport import Response, Transport
from compute_sim_planes.milo.paths import parse_target, project_path
from compute_sim_planes.milo.planes import ROOT

# The transport of one plane (a project's id, or `ROOT`) in, its replacement out.
Wrap: TypeAlias = Callable[[str, Transport], Transport]


class PerPlaneTransport:
    """A transport with a wrapper around each plane's transport."""

    def __init__(self, inner: Transport, wrap: Wrap) -> None:
        self._inner = inner
        self._wrap = wrap
        self._planes: dict[str, Transport] = {}

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        asked = parse_target(target)
        plane = self._at(asked.project or ROOT)
        return await plane.request(method, asked.path, headers, body)

    def _at(self, project: str) -> Transport:
        existing = self._planes.get(project)
        if existing is None:
            prefix = project_path(project) if project else ""
            existing = self._planes[project] = self._wrap(
                project, _PrefixTransport(self._inner, prefix)
            )
        return existing


class _PrefixTransport:
    """A plane under a path prefix, as a plane of its own."""

    def __init__(self, inner: Transport, prefix: str) -> None:
        self._inner = inner
        self._prefix = prefix

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        return await self._inner.request(method, self._prefix + target, headers, body)
