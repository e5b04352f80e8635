"""The border of a plane: one request in, one answer out, as bytes.

Both forms of a server, in-process and over HTTP, are this one protocol, so faults and recorders can
be put between a client and either of them. An answer's body may be endless (a watch); whoever asked
closes it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol


class Answer(Protocol):
    """What a plane replies. `close` may be called at any time, twice, and ends `chunks`."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """Somewhere to send requests to. Header names are matched without regard to case."""

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer: ...


class BytesAnswer:
    """An answer whose body is complete."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        if self.body:
            yield self.body

    async def close(self) -> None:
        """Nothing is held open."""


async def read_body(answer: Answer) -> bytes:
    """The whole body of an answer that ends, and its release."""
    try:
        return b"".join([chunk async for chunk in answer.chunks()])
    finally:
        await answer.close()
