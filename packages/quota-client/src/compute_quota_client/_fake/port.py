"""The fake behind a real port, for tests of TLS and connections, which a mock transport leaves out.

A minimal HTTP/1.1 server: bodies with a length, answers in one piece or, for watches, in chunks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Self

import httpx

from compute_quota_client._fake.streams import WatchStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    Handler = Callable[[httpx.Request], Awaitable[httpx.Response]]


_COMMON_NAME: Final = re.compile(r"\('commonName', '([^']*)'\)")


class FakePort:
    """Answers HTTP on a free port of the loopback interface; an async context manager."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None) -> None:
        self._handler = handler
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.open_connections = 0
        self.most_connections = 0
        self.all_connections = 0
        self.client_names: list[str | None] = []
        """The common name of the client's certificate, for every request."""

    @property
    def url(self) -> str:
        """The base URL."""
        if self._server is None:
            raise RuntimeError("the port is not open")
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._serving):
            task.cancel()
        if self._serving:
            await asyncio.wait(set(self._serving))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        self.open_connections += 1
        self.all_connections += 1
        self.most_connections = max(self.most_connections, self.open_connections)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            # The port is closed.
            pass
        finally:
            self.open_connections -= 1
            await _close(writer)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        request_line, *lines = head.decode("latin-1").rstrip().split("\r\n")
        method, target, _ = request_line.split(" ")
        headers = httpx.Headers([_header(line) for line in lines])
        body = await reader.readexactly(int(headers.get("Content-Length", "0")))
        self.client_names.append(_client_name(writer))
        request = httpx.Request(method, self.url + target, headers=headers, content=body)
        try:
            response = await self._handler(request)
        except httpx.TransportError:
            return False
        if isinstance(response.stream, WatchStream):
            await self._send_stream(response, reader, writer)
            return False
        content = response.content
        writer.write(_head(response, {"Content-Length": str(len(content))}) + content)
        await writer.drain()
        return True

    @staticmethod
    async def _send_stream(
        response: httpx.Response, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(_head(response, {"Transfer-Encoding": "chunked"}))
        await writer.drain()
        sending = asyncio.ensure_future(_send_chunks(response, writer))
        # End of file from the client ends the watch.
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await response.aclose()


async def _close(writer: asyncio.StreamWriter) -> None:
    """Closes the connection without the wait for TLS shutdown, which may take 30 s."""
    writer.close()
    try:
        async with asyncio.timeout(0.2):
            await writer.wait_closed()
    except (TimeoutError, OSError):
        writer.transport.abort()


async def _send_chunks(response: httpx.Response, writer: asyncio.StreamWriter) -> None:
    async for chunk in response.aiter_raw():
        writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _head(response: httpx.Response, more: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {response.status_code} Fake"]
    lines += [
        f"{name}: {value}"
        for name, value in [*response.headers.items(), *more.items()]
        if name.lower() != "content-length" or name in more
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.strip()


def _client_name(writer: asyncio.StreamWriter) -> str | None:
    tls: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    certificate = tls.getpeercert() if tls is not None else None
    # `subject` is a tuple of tuples of pairs.
    match = _COMMON_NAME.search(repr((certificate or {}).get("subject")))
    return match[1] if match else None
