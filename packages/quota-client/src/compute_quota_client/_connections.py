"""The connections of one client: one pool for requests, one for watches, both on one SSL context.

All projects share them, so that ten thousand projects cost 32 connections (docs/spec/quota.md A5).
A rotated CA or client certificate gives a new pair of pools; the old pair is closed after its last
exchange.

Transports, not httpx clients: those keep cookies, log each request at INFO and can follow
redirects. The credential is sent to the named server only, so proxies of the environment are not
used either.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import httpx

from compute_kubeconfig.tls import ClientIdentity, share_client_context
from compute_quota_client._exceptions import QuotaUsageError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable

    from compute_kubeconfig.access import Material
    from compute_quota_client._config import Http

Transport: TypeAlias = httpx.AsyncBaseTransport
TlsIdentity: TypeAlias = tuple[bytes | None, ClientIdentity | None]
AIOHTTP_EXTRA: Final = "datum-compute-quota-client[aiohttp]"
# docs/spec/quota.md A5. As many are kept as may be opened: httpcore 1.0 counts busy connections as
# idle ones against what it may keep, and with fewer every request beyond them costs a handshake,
# which takes longer than the request.
REQUEST_LIMITS: Final = httpx.Limits(
    max_connections=32, max_keepalive_connections=32, keepalive_expiry=30.0
)
# Not limited here: each running watch has one connection, watches are limited by their owners, and
# no finished connection is kept.
WATCH_LIMITS: Final = httpx.Limits(max_connections=None, max_keepalive_connections=0)


@dataclass(slots=True, eq=False)
class _Pools:
    """Two pools that are closed together, and the number of exchanges on them."""

    requests: httpx.AsyncBaseTransport
    watches: httpx.AsyncBaseTransport
    in_use: int = 0
    retired: bool = False

    async def aclose(self) -> None:
        await self.requests.aclose()
        await self.watches.aclose()


def _real_pools(material: Material, http: Http) -> _Pools:
    open_transport = _find_library(http)
    context = share_client_context(material.ca, material.identity)
    return _Pools(open_transport(context, REQUEST_LIMITS), open_transport(context, WATCH_LIMITS))


def _find_library(http: Http) -> Callable[[ssl.SSLContext, httpx.Limits], Transport]:
    if http == "httpcore":
        return lambda context, limits: httpx.AsyncHTTPTransport(
            verify=context, trust_env=False, limits=limits
        )
    try:
        # Imported here: a client of httpcore needs no aiohttp.
        from compute_quota_client._aiohttp import AiohttpTransport
    except ImportError:
        raise QuotaUsageError(f"is 'aiohttp'; install {AIOHTTP_EXTRA!r}", argument="http") from None
    return AiohttpTransport


class Connections:
    """Gives the pool for a credential; `transport`, where given, replaces both pools."""

    def __init__(
        self, material: Material, transport: Transport | None, http: Http = "httpcore"
    ) -> None:
        self._fixed = transport is not None
        self._http: Http = http
        self._tls_identity: TlsIdentity = (material.ca, material.identity)
        self._current = (
            _real_pools(material, http) if transport is None else _Pools(transport, transport)
        )
        self._retired: set[_Pools] = set()
        self.closed = False

    @asynccontextmanager
    async def for_requests(
        self, material: Material
    ) -> AsyncGenerator[httpx.AsyncBaseTransport, None]:
        """The pool for one request."""
        async with self._lease(material) as pools:
            yield pools.requests

    @asynccontextmanager
    async def for_watches(
        self, material: Material
    ) -> AsyncGenerator[httpx.AsyncBaseTransport, None]:
        """The pool for one watch."""
        async with self._lease(material) as pools:
            yield pools.watches

    async def aclose(self) -> None:
        """Closes every connection, also of exchanges under way."""
        for pools in (self._current, *self._retired):
            await pools.aclose()
        self._retired.clear()

    @asynccontextmanager
    async def _lease(self, material: Material) -> AsyncGenerator[_Pools, None]:
        pools = await self._pools_for(material)
        pools.in_use += 1
        try:
            yield pools
        finally:
            pools.in_use -= 1
            await self._close_if_done(pools)

    async def _pools_for(self, material: Material) -> _Pools:
        if self.closed:
            raise QuotaUsageError("is closed", argument="client")
        tls_identity = (material.ca, material.identity)
        if not self._fixed and tls_identity != self._tls_identity:
            old, self._current = self._current, _real_pools(material, self._http)
            self._tls_identity = tls_identity
            old.retired = True
            self._retired.add(old)
            # Read before the await: another rotation may replace it meanwhile.
            current = self._current
            await self._close_if_done(old)
            return current
        return self._current

    async def _close_if_done(self, pools: _Pools) -> None:
        if pools.retired and pools.in_use == 0 and pools in self._retired:
            self._retired.discard(pools)
            await pools.aclose()
