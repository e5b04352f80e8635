"""One connection to one server, for one request at a time whose answer is taken whole.

A pass sends a handful of requests for single objects, and what a general HTTP client does around
each (cookies, redirects, retries, tracing, a task for the body) takes five times as long as sending
the bytes and reading the answer. Here is only that. Streams and pages of lists go through
`http_transport.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, TypeGuard

from typing_extensions import override

from compute_operator_kit.exchange import LARGEST_ANSWER
from compute_operator_kit.http_answers import AnswerReader, GarbledAnswerError

# Most answers fit in; of a larger one the loop reads on into the same.
INBOX_BYTES: Final = 64 * 1024


class StaleConnectionError(ConnectionResetError):
    """Closed by the server before anything of the answer came: it may have been so already when
    the request went out.
    """


class HttpConnection(asyncio.BufferedProtocol):
    """Sends requests one after another.

    `inbox` is where the loop puts what has arrived. All connections of a loop may share one: what
    is in it is taken out before anything else runs. Without it, a loop with TLS takes 256 KiB from
    the system for every answer and gives them back.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, inbox: memoryview) -> None:
        self._loop = loop
        self._inbox = inbox
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._waiting: asyncio.Future[AnswerReader] | None = None
        self._is_usable = True
        self.was_used = False

    @property
    def is_usable(self) -> bool:
        """Whether another request may be sent."""
        return self._is_usable and self._waiting is None

    async def exchange(self, request: bytes) -> AnswerReader:
        """Sends a request and gives its answer; whatever else happens closes the connection."""
        if self._transport is None or not self.is_usable:
            raise StaleConnectionError("exchanging: the connection is closed")
        self._reader = AnswerReader(LARGEST_ANSWER)
        self._waiting = self._loop.create_future()
        self._transport.write(request)
        try:
            answer = await self._waiting
        except BaseException:
            # Given up on (a deadline) or broken: what still comes belongs to nobody.
            self.close()
            raise
        finally:
            self._waiting = self._reader = None
        self.was_used = True
        if not answer.is_reusable:
            self.close()
        return answer

    def close(self) -> None:
        self._is_usable = False
        if self._transport is not None:
            # A TLS connection that is closed kindly waits for the server's word on it.
            self._transport.abort()

    # what the loop tells -------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if _is_stream(transport):
            self._transport = transport

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return self._inbox

    @override
    def buffer_updated(self, nbytes: int) -> None:
        reader = self._reader
        if reader is None:
            self.close()  # nobody asked
            return
        try:
            reader.feed(self._inbox[:nbytes])
        except GarbledAnswerError as garbled:
            self._fail(ConnectionResetError(str(garbled)))
            return
        if reader.is_complete:
            self._succeed(reader)

    @override
    def eof_received(self) -> bool | None:
        return None  # closes; `connection_lost` says the rest

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._is_usable = False
        reader = self._reader
        if reader is None:
            return
        if exc is None and reader.end():
            self._succeed(reader)
        elif self.was_used and not reader.has_begun:
            self._fail(StaleConnectionError("exchanging: closed before the answer"))
        else:
            lost = type(exc).__name__ if exc is not None else "closed"
            self._fail(ConnectionResetError(f"exchanging: {lost} before the end of the answer"))

    def _succeed(self, reader: AnswerReader) -> None:
        self._reader = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(reader)

    def _fail(self, error: OSError) -> None:
        self._reader = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


def _is_stream(transport: asyncio.BaseTransport) -> TypeGuard[asyncio.Transport]:
    """uvloop's transports are not of asyncio's class; they do what it says."""
    return hasattr(transport, "write")


def render_request(
    method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None
) -> bytes:
    """The bytes of a request; text that would end a line early raises."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Accept-Encoding: identity"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        raise ValueError("sending a request: a line end inside a header")
    raw = f"{head}\r\n\r\n".encode("latin-1")
    return raw if body is None else raw + body
