"""An httpx transport for the quota client over the simulated transports of its process.

Through it a claim meets the same links, faults and recording as the cell's other requests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx
from typing_extensions import override

from compute_sim_planes.api_server.http.transport import Response, Transport
from compute_sim_planes.milo.paths import parse_target


class QuotaTransport(httpx.AsyncBaseTransport):
    """Serves Milo's one address; `reach` gives the transport to a project."""

    def __init__(self, reach: Callable[[str], Transport]) -> None:
        self._reach = reach

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        asked = parse_target(request.url.raw_path.decode("ascii"))
        if asked.project is None:
            raise httpx.ConnectError("a cell asks projects only", request=request)
        body = await request.aread()
        try:
            answer = await self._reach(asked.project).request(
                request.method, asked.path, dict(request.headers), body or None
            )
        except OSError as cause:
            raise httpx.ConnectError(str(cause), request=request) from cause
        return httpx.Response(answer.status, headers=dict(answer.headers), stream=_Body(answer))


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: Response) -> None:
        self._answer = answer

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.chunks():
                yield chunk
        except OSError as cause:
            raise httpx.ReadError(str(cause)) from cause

    @override
    async def aclose(self) -> None:
        await self._answer.close()
