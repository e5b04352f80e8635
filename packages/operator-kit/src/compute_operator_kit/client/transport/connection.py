"""An HTTP/1.1 connection to one server, for one request at a time with a short response.

A reconcile sends a few requests for single objects, and what a general HTTP client does around each
(cookies, redirects, retries, tracing, a task for the body) takes five times as long as sending and
reading the bytes. Watches and lists use `aiohttp.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, TypeGuard

from typing_extensions import override

from compute_operator_kit.client.rest import LARGEST_ANSWER
from compute_operator_kit.client.transport.response_parser import AnswerReader, GarbledAnswerError

# Most responses fit; a larger one is read in several parts.
INBOX_BYTES: Final = 64 * 1024


class StaleConnectionError(ConnectionResetError):
    """The server closed the connection before it sent any part of the response: possibly before it
    got the request.
    """


class HttpConnection(asyncio.BufferedProtocol):
    """Sends requests one after another.

    The event loop writes received bytes to `inbox`, which all connections of a loop share: it is
    emptied before any other code runs. Without it, a loop with TLS allocates 256 KiB for every
    response and frees them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, inbox: memoryview) -> None:
        self._loop = loop
        self._inbox = inbox
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._response: asyncio.Future[AnswerReader] | None = None
        self._is_usable = True
        self.was_used = False

    @property
    def is_usable(self) -> bool:
        """Whether another request may be sent."""
        return self._is_usable and self._response is None

    async def exchange(self, request: bytes) -> AnswerReader:
        """Sends a request and returns its response; any error closes the connection."""
        if self._transport is None or not self.is_usable:
            raise StaleConnectionError("exchanging: the connection is closed")
        self._reader = AnswerReader(LARGEST_ANSWER)
        self._response = self._loop.create_future()
        self._transport.write(request)
        try:
            answer = await self._response
        except BaseException:
            # After a timeout or an error, bytes that still arrive belong to no request.
            self.close()
            raise
        finally:
            self._response = self._reader = None
        self.was_used = True
        if not answer.is_reusable:
            self.close()
        return answer

    def close(self) -> None:
        self._is_usable = False
        if self._transport is not None:
            # Closing a TLS connection waits for the server; aborting does not.
            self._transport.abort()

    # callbacks of the event loop -------------------------------------------------------------

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
            self.close()  # bytes without a request
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
        return None  # closes the transport; `connection_lost` follows

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
            cause = type(exc).__name__ if exc is not None else "closed"
            self._fail(ConnectionResetError(f"exchanging: {cause} before the end of the answer"))

    def _succeed(self, reader: AnswerReader) -> None:
        self._reader = None
        if self._response is not None and not self._response.done():
            self._response.set_result(reader)

    def _fail(self, error: OSError) -> None:
        self._reader = None
        if self._response is not None and not self._response.done():
            self._response.set_exception(error)


def _is_stream(transport: asyncio.BaseTransport) -> TypeGuard[asyncio.Transport]:
    """By its methods: uvloop's transports are not of asyncio's class."""
    return hasattr(transport, "write")


def render_request(
    method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None
) -> bytes:
    """The bytes of a request; a line break inside a header raises."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Accept-Encoding: identity"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        raise ValueError("sending a request: a line end inside a header")
    raw = f"{head}\r\n\r\n".encode("latin-1")
    return raw if body is None else raw + body
