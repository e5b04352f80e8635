"""An httpx transport on aiohttp, for services that send many requests: a third of the CPU time.

It has the interface of httpx's own transport, so that the rest of the library, its errors included,
is the same on either. Only limits, TLS and errors are translated here. Imported only where
`QuotaSettings.http` selects it, since aiohttp is not a dependency of this library.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

import aiohttp
import httpx
from yarl import URL

from compute_quota_client._override import override

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Generator, Mapping

# Headers that httpx sets and aiohttp writes by itself, with the same values.
_WRITTEN: Final = frozenset({"host", "content-length", "connection", "transfer-encoding"})
# Headers that aiohttp would add and httpx has not set.
_NOT_ADDED: Final = ("Accept-Encoding", "Content-Type", "User-Agent")
_FOREVER: Final = 3600.0


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Connections to any server, all on one SSL context."""

    def __init__(self, context: ssl.SSLContext, limits: httpx.Limits) -> None:
        self._context = context
        self._limits = limits
        # Waited for here: a timeout of aiohttp does not name the wait for a connection.
        most = limits.max_connections
        self._free = None if most is None else asyncio.Semaphore(most)
        self._session: aiohttp.ClientSession | None = None

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        timeouts: Mapping[str, float | None] = request.extensions.get("timeout", {})
        await self._take_place(request, timeouts.get("pool"))
        try:
            with _translated(request):
                response = await self._send(request, timeouts)
        except BaseException:
            self._give_place()
            raise
        return httpx.Response(
            response.status,
            headers=list(response.raw_headers),
            stream=_Body(self, request, response),
            request=request,
        )

    async def _send(
        self, request: httpx.Request, timeouts: Mapping[str, float | None]
    ) -> aiohttp.ClientResponse:
        headers = [(name, value) for name, value in request.headers.items() if name not in _WRITTEN]
        return await self._opened().request(
            request.method,
            # Encoded and checked segment by segment: normalising again would undo it.
            URL(str(request.url), encoded=True),
            headers=headers,
            data=request.content or None,
            allow_redirects=False,
            skip_auto_headers=_NOT_ADDED,
            server_hostname=request.extensions.get("sni_hostname"),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=timeouts.get("connect"), sock_read=timeouts.get("read")
            ),
        )

    def _opened(self) -> aiohttp.ClientSession:
        """The session, opened by the first request: it belongs to the loop that runs then."""
        if self._session is None:
            is_kept, expiry = self._limits.max_keepalive_connections != 0, None
            if is_kept:
                expiry = self._limits.keepalive_expiry or _FOREVER
            # The library leaves the address in its `socket_factory` untyped.
            connector = aiohttp.TCPConnector(  # pyright: ignore[reportUnknownMemberType]
                limit=0, ssl=self._context, force_close=not is_kept, keepalive_timeout=expiry
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    async def _take_place(self, request: httpx.Request, patience: float | None) -> None:
        if self._free is None:
            return
        if not self._free.locked():
            await self._free.acquire()  # at once
            return
        try:
            async with asyncio.timeout(patience):
                await self._free.acquire()
        except TimeoutError:
            raise httpx.PoolTimeout("no connection became free", request=request) from None

    def _give_place(self) -> None:
        if self._free is not None:
            self._free.release()

    async def close_body(self, response: aiohttp.ClientResponse) -> None:
        """Frees the connection; closes it where the answer was not read to its end."""
        if response.content.at_eof():
            response.release()
        else:
            response.close()
        self._give_place()

    @override
    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            # Closed connections are freed in the loop's next iteration, which may be its last.
            await asyncio.sleep(0)


class _Body(httpx.AsyncByteStream):
    """The body of an answer, chunk by chunk."""

    def __init__(
        self, transport: AiohttpTransport, request: httpx.Request, response: aiohttp.ClientResponse
    ) -> None:
        self._transport = transport
        self._request = request
        self._response = response
        self._is_closed = False

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated(self._request):
            while chunk := await self._response.content.readany():
                yield chunk

    @override
    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._transport.close_body(self._response)


@contextlib.contextmanager
def _translated(request: httpx.Request) -> Generator[None, None, None]:
    """Errors of aiohttp as those of httpx, which distinguish how far the request got."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx.ConnectTimeout(str(error), request=request) from error
    except (aiohttp.ServerTimeoutError, TimeoutError) as error:
        # Our own deadline does not come here: it is a cancellation until its scope ends.
        raise httpx.ReadTimeout(str(error), request=request) from error
    except aiohttp.ClientConnectorError as error:
        raise httpx.ConnectError(type(error).__name__, request=request) from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError) as error:
        raise httpx.RemoteProtocolError(type(error).__name__, request=request) from error
    except (aiohttp.ClientError, OSError) as error:
        raise httpx.ReadError(type(error).__name__, request=request) from error
