"""The transport over aiohttp, for watches and lists.

One session serves all planes of a process; aiohttp pools by host, TLS context and server name, so
that planes of one server share connections, and a rotated certificate (a new context) gets new
ones. Proxy settings of the system, cookies and redirects are off: they could send a credential to
another server.
"""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from typing_extensions import override
from yarl import URL

from compute_operator_kit.client.rest import LARGEST_IN_ONE
from compute_operator_kit.client.transport.connection import INBOX_BYTES

# `rest.py` has the deadlines: a watch has none, any other request one for all of it.
_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None)
_WATCH: Final = "watch=1"  # in the query of `HttpKubeClient.watch`


DNS_CACHE_SECONDS: Final = 30


class _WithInbox(asyncio.BufferedProtocol):
    """Passes received bytes from a shared buffer (`inbox`) to a protocol of aiohttp.

    Without it, an event loop with TLS allocates 256 KiB for every event of a watch and frees them.
    All connections of a loop share one buffer: it is emptied before any other code runs.
    """

    def __init__(self, reader: ResponseHandler, inbox: memoryview) -> None:
        self._reader = reader
        self._inbox = inbox

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return self._inbox

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self._reader.data_received(bytes(self._inbox[:nbytes]))

    @override
    def eof_received(self) -> bool | None:
        self._reader.eof_received()
        return None

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._reader.connection_lost(exc)

    @override
    def pause_writing(self) -> None:
        self._reader.pause_writing()

    @override
    def resume_writing(self) -> None:
        self._reader.resume_writing()


class _Connector(aiohttp.TCPConnector):
    """Separate connection pools for requests and for watches.

    The buffers of a TLS connection stay as large as its largest response: 200 KB after a page of 30
    objects of 4 KB. A watch on such a connection would keep them for as long as its plane is
    engaged.
    """

    def __init__(self, *, limit: int, ttl_dns_cache: int) -> None:
        # aiohttp leaves the address in its `socket_factory` untyped.
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            limit=limit, ttl_dns_cache=ttl_dns_cache
        )
        self._watches = aiohttp.TCPConnector(limit=limit, ttl_dns_cache=ttl_dns_cache)
        self._inbox = memoryview(bytearray(INBOX_BYTES))

    @override
    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        query = req.url.raw_query_string
        if _WATCH in query and _WATCH in query.split("&"):
            watch = await self._watches.connect(req, traces, timeout)
            self._give_inbox(watch)
            return watch
        return await super().connect(req, traces, timeout)

    def _give_inbox(self, watch: Connection) -> None:
        """Sets the protocol before anything is sent; a connection that was used has it already."""
        reader, transport = watch.protocol, watch.transport
        if reader is None or transport is None or transport.get_protocol() is not reader:
            return
        if transport.get_extra_info("ssl_object") is not None:
            transport.set_protocol(_WithInbox(reader, self._inbox))

    @override
    async def close(self, *, abort_ssl: bool = False) -> None:
        await self._watches.close(abort_ssl=abort_ssl)
        await super().close(abort_ssl=abort_ssl)


def open_session() -> aiohttp.ClientSession:
    """A session for all planes; to be opened inside the running event loop."""
    return aiohttp.ClientSession(
        # No limit here: `flow_control.py` limits requests per plane, and a watch keeps its
        # connection.
        connector=_Connector(limit=0, ttl_dns_cache=DNS_CACHE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=_NO_TIMEOUT,
        trust_env=False,
    )


@dataclass(frozen=True, slots=True)
class Tls:
    """The TLS context of a server; read for each request, because its files rotate."""

    context: Callable[[], ssl.SSLContext]
    server_name: str | None = None


class AiohttpTransport:
    """Sends requests to one server."""

    def __init__(self, session: aiohttp.ClientSession, origin: str, tls: Tls | None = None) -> None:
        """`origin` is scheme, host and port; without `tls` the scheme must not need it."""
        self._session = session
        self._origin = origin.rstrip("/")
        self._tls = tls

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> AiohttpAnswer:
        # Each segment is encoded already; normalising the URL would undo that.
        url = URL(self._origin + target, encoded=True)
        try:
            response = await self._session.request(
                method,
                url,
                headers=headers,
                data=_payload(body),
                allow_redirects=False,
                ssl=self._tls.context() if self._tls else True,
                server_hostname=self._tls.server_name if self._tls else None,
            )
        except aiohttp.ClientError as cause:
            raise _plain_error(cause) from cause
        return AiohttpAnswer(response)


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """A large body is sent in pieces: in one piece it blocks the event loop, and aiohttp warns from
    1 MiB on.
    """
    return io.BytesIO(body) if body is not None and len(body) > LARGEST_IN_ONE else body


class AiohttpAnswer:
    """A response with a body that is read as it arrives."""

    __slots__ = ("_response",)

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        content = self._response.content
        try:
            # Not all at once: a burst of events in one piece of over 128 KiB would be a mapping of
            # its own, with its page faults (`core/memory.py`).
            while chunk := await content.read(INBOX_BYTES):
                yield chunk
        except aiohttp.ClientError as cause:
            raise _plain_error(cause) from cause

    async def close(self) -> None:
        # Only a connection with a response that was read to its end can serve another request.
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


def _plain_error(cause: aiohttp.ClientError) -> Exception:
    """The `OSError` for an error of aiohttp: never sent, or unknown."""
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return ConnectionRefusedError("connecting: the certificate is not trusted")
    if isinstance(cause, aiohttp.ClientConnectorError):
        return ConnectionRefusedError(f"connecting: {type(cause).__name__}")
    if isinstance(cause, OSError):
        return cause
    return ConnectionResetError(f"exchanging: {type(cause).__name__}")
