"""HTTP transport of the simulated systems' client, on aiohttp.

It handles connections and TLS only. Proxy settings of the system, cookies and redirects are
ignored.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping

import aiohttp
from yarl import URL


class HttpTransport:
    """A connection pool for one server. Must be opened in the loop that uses it, and closed."""

    def __init__(
        self, origin: str, *, token: str = "", context: ssl.SSLContext | None = None
    ) -> None:
        """`origin` is scheme, host and port; `context` verifies an https server."""
        self._origin = origin.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._context = context
        self._session = aiohttp.ClientSession(
            # Every watch holds a connection.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            trust_env=False,
        )

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpResponse:
        try:
            response = await self._session.request(
                method,
                # Already encoded by segment: encoding again would change it.
                URL(self._origin + target, encoded=True),
                headers={**headers, **self._headers},
                data=body,
                allow_redirects=False,
                ssl=self._context if self._context is not None else True,
            )
        except aiohttp.ClientError as failure:
            if isinstance(failure, OSError):
                raise
            # A server that closes the connection is reported like any other broken connection.
            raise ConnectionResetError(f"asking a server: {type(failure).__name__}") from failure
        return HttpResponse(response)

    async def close(self) -> None:
        await self._session.close()
        # Aborted connections are released in the loop's next iteration, which may be its last.
        await asyncio.sleep(0)


class HttpResponse:
    """A response with a body that is read as it arrives."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except aiohttp.ClientError as failure:
            raise ConnectionResetError(f"reading an answer: {type(failure).__name__}") from failure

    async def close(self) -> None:
        if self._response.content.at_eof():
            self._response.release()
            return
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            # An orderly TLS shutdown waits for the server, and the loop may end before that.
            connection.transport.abort()
        self._response.close()
