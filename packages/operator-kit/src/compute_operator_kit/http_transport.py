"""The seam `Transport` on aiohttp: connections, TLS and nothing else.

One session serves every plane of the process; aiohttp pools by host, TLS context and server name,
so the many planes that one server offers under different paths share connections, and a rotated
certificate (a new context) gets new ones. The system's proxy settings, cookies and redirects are
not for us: a credential must not travel elsewhere.
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

from compute_operator_kit.exchange import LARGEST_IN_ONE
from compute_operator_kit.http_connection import INBOX_BYTES

# Deadlines are the caller's (`exchange.py`): a watch has none, and every other request one for all
# of it.
_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None)
_WATCH: Final = "watch=1"  # as `kube_http.py` asks for one


DNS_CACHE_SECONDS: Final = 30


class _WithInbox(asyncio.BufferedProtocol):
    """A protocol of aiohttp's that is handed what has arrived in `inbox`.

    The library's own take what a loop with TLS makes for them: 256 KiB from the system, and back to
    it, for every event of a watch. All connections of a loop may share one inbox: what is in it is
    taken out before anything else runs.
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
    """Connections for requests, and others for watches.

    The buffers of a TLS connection stay as large as the largest answer it has carried: 200 KB after
    a page of 30 objects of 4 KB. A watch that took such a connection over would hold on to them for
    as long as its plane is engaged, so watches have a pool of their own.
    """

    def __init__(self, *, limit: int, ttl_dns_cache: int) -> None:
        # The library leaves the address in its `socket_factory` untyped.
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
        """Before anything is sent, so nothing has arrived; one that was used before has it."""
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
    """A session for every plane; to be opened inside the loop that uses it, and closed at
    the end.
    """
    return aiohttp.ClientSession(
        # How much may be in flight is decided per plane (`lane.py`), and each watch holds a
        # connection.
        connector=_Connector(limit=0, ttl_dns_cache=DNS_CACHE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=_NO_TIMEOUT,
        trust_env=False,
    )


@dataclass(frozen=True, slots=True)
class Tls:
    """How to trust a server; asked for per request, because files rotate."""

    context: Callable[[], ssl.SSLContext]
    server_name: str | None = None


class AiohttpTransport:
    """One server."""

    def __init__(self, session: aiohttp.ClientSession, origin: str, tls: Tls | None = None) -> None:
        """`origin` is scheme, host and port; without `tls` the scheme must not need it."""
        self._session = session
        self._origin = origin.rstrip("/")
        self._tls = tls

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> AiohttpAnswer:
        # Encoded already, segment by segment: normalising again would undo it.
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
    """What is large is sent piece by piece: in one, it would hold up everything else, and the
    library warns from 1 MiB.
    """
    return io.BytesIO(body) if body is not None and len(body) > LARGEST_IN_ONE else body


class AiohttpAnswer:
    """A reply whose body is read as it comes."""

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
            while chunk := await content.readany():
                yield chunk
        except aiohttp.ClientError as cause:
            raise _plain_error(cause) from cause

    async def close(self) -> None:
        # A connection whose answer was read to its end goes back to the pool; any other is of no
        # use to the next request.
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


def _plain_error(cause: aiohttp.ClientError) -> Exception:
    """The library's error in the words of the seam: never sent, or not known."""
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return ConnectionRefusedError("connecting: the certificate is not trusted")
    if isinstance(cause, aiohttp.ClientConnectorError):
        return ConnectionRefusedError(f"connecting: {type(cause).__name__}")
    if isinstance(cause, OSError):
        return cause
    return ConnectionResetError(f"exchanging: {type(cause).__name__}")
