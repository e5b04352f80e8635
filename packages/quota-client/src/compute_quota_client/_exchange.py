"""One HTTP exchange with the quota server: a request, and its answer or `Lost`.

Errors of httpx are translated here, and the credential is removed from them, so that no log of a
caller shows it. `_sender` decides whether a request may be sent and what a lost answer means.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

import httpx

from compute_quota_client import _retry
from compute_quota_client._answers import Answer, Attempt
from compute_quota_client._clock import loop_now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AsyncExitStack
    from datetime import datetime

    from compute_kubeconfig.access import Material
    from compute_quota_client._connections import Connections

_T = TypeVar("_T")
# httpx's own timeouts come first and name their cause; this one ends what they do not limit, a slow
# body for example.
_GRACE: Final = timedelta(milliseconds=100)
_REDACTED: Final = b"[redacted]"
# A shorter token is no secret, and might be a word of the answer.
_SHORTEST_SECRET: Final = 8
# A page of 500 claims has about 1 MiB. An endless body must not fill the memory.
BODY_LIMIT: Final = 32 * 1024 * 1024
ERROR_BODY_LIMIT: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """One request with its parameters; it may be sent more than once."""

    attempt: Attempt
    method: str
    url: httpx.URL
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None
    content_type: str = "application/json"
    silence_limit: timedelta = _retry.READ_LIMIT


class Lost(Exception):  # noqa: N818 - the caller decides whether it is an error
    """There is no answer; `blames_plane` where that counts as a failure of the plane."""

    def __init__(self, cause: str, *, blames_plane: bool = True) -> None:
        super().__init__(cause)
        self.blames_plane = blames_plane


class Exchanges:
    """Exchanges with one server, over its connections."""

    def __init__(
        self, connections: Connections, user_agent: str, wall_clock: Callable[[], datetime]
    ) -> None:
        self._connections = connections
        self._user_agent = user_agent
        self._wall_clock = wall_clock
        self._under_way: set[asyncio.Timeout] = set()
        self._ended = asyncio.Event()

    async def send(self, call: Call, material: Material, deadline: timedelta) -> Answer:
        """The whole answer.

        Raises:
            Lost: there is none.
        """
        async with self._connections.for_requests(material) as pool:
            request = self._request(call, material, deadline)
            response, body = await self._bounded(_whole(pool, request), request, deadline)
            return self._answer(response, body, material)

    async def open(
        self, call: Call, material: Material, deadline: timedelta, stack: AsyncExitStack
    ) -> httpx.Response | Answer:
        """An answer of status 200 without its body, kept open by `stack`; any other one whole.

        Raises:
            Lost: there is none.
        """
        pool = await stack.enter_async_context(self._connections.for_watches(material))
        request = self._request(call, material, deadline)
        response = await self._bounded(pool.handle_async_request(request), request, deadline)
        stack.push_async_callback(response.aclose)
        if response.status_code == 200:
            _refuse_encoding(response)
            return response
        body = await self._bounded(_read_body(response), request, deadline)
        return self._answer(response, body, material)

    async def aclose(self) -> None:
        """Ends every exchange in flight, after the last one has begun.

        A pool that is closed while requests wait in it would open connections for them.
        """
        for patience in self._under_way:
            if not patience.expired():
                patience.reschedule(asyncio.get_running_loop().time())
        while self._under_way:
            self._ended.clear()
            await self._ended.wait()

    def _request(self, call: Call, material: Material, deadline: timedelta) -> httpx.Request:
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        if call.content is not None:
            headers["Content-Type"] = call.content_type
        if material.token:
            headers["Authorization"] = f"Bearer {material.token}"
        left = max(deadline - loop_now(), timedelta(0)).total_seconds()
        timeout = httpx.Timeout(
            connect=min(_retry.CONNECT_LIMIT.total_seconds(), left),
            read=call.silence_limit.total_seconds(),
            write=_retry.READ_LIMIT.total_seconds(),
            pool=left,
        )
        extensions: dict[str, object] = {"timeout": timeout.as_dict()}
        if material.tls_server_name:
            extensions["sni_hostname"] = material.tls_server_name
        return httpx.Request(
            call.method,
            call.url,
            params=call.params or None,
            content=call.content,
            headers=headers,
            extensions=extensions,
        )

    async def _bounded(
        self, exchange: Awaitable[_T], request: httpx.Request, deadline: timedelta
    ) -> _T:
        """The result of `exchange` before the deadline, or `Lost`."""
        try:
            async with asyncio.timeout_at((deadline + _GRACE).total_seconds()) as patience:
                self._under_way.add(patience)
                try:
                    return await exchange
                finally:
                    self._under_way.discard(patience)
                    self._ended.set()
        except httpx.PoolTimeout as error:
            raise Lost("no connection became free", blames_plane=False) from error
        except (httpx.TimeoutException, TimeoutError) as error:
            raise Lost(f"timed out ({type(error).__name__})") from error
        except (httpx.TransportError, httpx.StreamError, httpx.DecodingError) as error:
            raise Lost(f"the connection failed ({type(error).__name__})") from error
        finally:
            # The cause of an error holds its request, which must not carry the credential.
            request.headers.pop("Authorization", None)

    def _answer(self, response: httpx.Response, body: bytes, material: Material) -> Answer:
        status = response.status_code
        secret = material.token.encode()
        if status >= 400 and len(secret) >= _SHORTEST_SECRET:
            body = body.replace(secret, _REDACTED)
        return Answer(status, body, self._pause_wanted(status, response.headers.get("Retry-After")))

    def _pause_wanted(self, status: int, header: str | None) -> timedelta | None:
        if status not in {429, 503}:
            return None
        wanted = _retry.parse_retry_after(header, self._wall_clock())
        if wanted is None and status == 429:
            wanted = _retry.DEFAULT_PAUSE
        return None if wanted is None else max(wanted, _retry.SHORTEST_PAUSE)


async def _whole(
    pool: httpx.AsyncBaseTransport, request: httpx.Request
) -> tuple[httpx.Response, bytes]:
    """The answer and its body; the connection is free again, or closed after an error."""
    response = await pool.handle_async_request(request)
    try:
        return response, await _read_body(response)
    finally:
        await response.aclose()


async def _read_body(response: httpx.Response) -> bytes:
    """The body, read piece by piece.

    The body of a failure is cut at its limit: its status is enough.

    Raises:
        Lost: the body of a success is longer than its limit, or a body is encoded.
    """
    _refuse_encoding(response)
    is_failure = response.status_code >= 400
    limit = ERROR_BODY_LIMIT if is_failure else BODY_LIMIT
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece[: limit + 1 - len(body)]
        if len(body) > limit:
            if is_failure:
                return bytes(body[:limit])
            raise Lost(f"the answer is longer than {limit // 1024**2} MiB")
    return bytes(body)


def _refuse_encoding(response: httpx.Response) -> None:
    """Refuses compressed bodies: a few bytes could expand to any size.

    Raises:
        Lost: the body is encoded.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"", "identity"}:
        raise Lost("the answer has an encoding that the request did not ask for")
