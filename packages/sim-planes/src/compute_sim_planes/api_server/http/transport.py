"""The transport protocol of a plane: one request in, one response out, as bytes.

A plane in the process and a plane over HTTP both implement it, so faults and recorders can be
placed between a client and either of them. The body of a watch has no end; the caller closes it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol


class Response(Protocol):
    """A response. `close` ends `chunks`; it may be called at any time and repeatedly."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """A destination of requests. Header names are matched case-insensitively."""

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response: ...


class BytesResponse:
    """A response with a complete body."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        if self.body:
            yield self.body

    async def close(self) -> None:
        """No connection is held open."""


async def read_body(answer: Response) -> bytes:
    """The whole body of a finite response, which is closed afterwards."""
    try:
        return b"".join([chunk async for chunk in answer.chunks()])
    finally:
        await answer.close()
