"""`/metrics` on its own address, with TLS and access control by the home plane.

With secure serving a TokenReview authenticates the bearer and a SubjectAccessReview authorises
`get` on the path `/metrics`: 401, 403 or 200, and 503 while the plane does not answer, so that an
outage never opens access. Results are cached for a short time under a digest of the token.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Final, Protocol

from aiohttp import web

from compute_operator_kit.config.settings import Bind
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.json import JsonMapping, JsonObject, member_object, member_text
from compute_operator_kit.core.keys import Kind
from compute_operator_kit.process.certificates import ServingCertificate
from compute_operator_kit.process.http_server import HttpServer

PATH: Final = "/metrics"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"  # Prometheus' text format
TOKEN_REVIEW: Final = Kind(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
# A scrape every 15 to 60 s must not cost two reviews each; a revoked reader may read for one minute
# more.
ALLOWED_FOR: Final = timedelta(seconds=60)
DENIED_FOR: Final = timedelta(seconds=10)
CACHED_RESULTS: Final = 256
REVIEWS_AT_ONCE: Final = 4  # clients with bad tokens must not flood the home plane
MAX_TOKEN: Final = 16384


class Reviewer(Protocol):
    """The part of `KubeClient` that creates reviews."""

    async def review(self, kind: Kind, body: JsonMapping) -> JsonObject: ...


class Guard(Protocol):
    """Access control of the metrics server: the status of the response."""

    async def authorize(self, authorization: str) -> HTTPStatus: ...


class OpenGuard:
    """Without access control: `secureServing: false`."""

    async def authorize(self, authorization: str) -> HTTPStatus:  # noqa: ARG002  # the port has it
        return HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class _CachedResult:
    status: HTTPStatus
    until: timedelta


class TokenReviewGuard:
    """Access control by reviews on the home plane."""

    def __init__(self, reviewer: Reviewer, clock: Clock) -> None:
        self._reviewer = reviewer
        self._clock = clock
        self._results: OrderedDict[bytes, _CachedResult] = OrderedDict()
        self._turn = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def authorize(self, authorization: str) -> HTTPStatus:
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > MAX_TOKEN:
            return HTTPStatus.UNAUTHORIZED
        digest = hashlib.sha256(token.encode()).digest()
        # Before the semaphore: a known reader does not wait behind many bad tokens.
        if (cached := self._find_cached(digest)) is not None:
            return cached
        async with self._turn:
            # Another request with the same token may have been answered meanwhile.
            if (cached := self._find_cached(digest)) is not None:
                return cached
            try:
                status = await self._review(token)
            except ReconcileError:
                return HTTPStatus.SERVICE_UNAVAILABLE  # no result, so nothing is cached
            self._cache(digest, status)
            return status

    def _find_cached(self, digest: bytes) -> HTTPStatus | None:
        result = self._results.get(digest)
        is_current = result is not None and self._clock.monotonic() < result.until
        return result.status if result is not None and is_current else None

    async def _review(self, token: str) -> HTTPStatus:
        review = await self._ask(TOKEN_REVIEW, {"token": token})
        user = member_object(review, "user")
        if review.get("authenticated") is not True or not member_text(user, "username"):
            return HTTPStatus.UNAUTHORIZED
        asked: JsonObject = {
            "user": user["username"],
            "uid": member_text(user, "uid"),
            "groups": user.get("groups"),
            "extra": user.get("extra"),
            "nonResourceAttributes": {"path": PATH, "verb": "get"},
        }
        access = await self._ask(ACCESS_REVIEW, asked)
        return HTTPStatus.OK if access.get("allowed") is True else HTTPStatus.FORBIDDEN

    async def _ask(self, kind: Kind, spec: JsonObject) -> JsonObject:
        body: JsonObject = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {},
            "spec": spec,
        }
        return member_object(await self._reviewer.review(kind, body), "status")

    def _cache(self, digest: bytes, status: HTTPStatus) -> None:
        lifetime = ALLOWED_FOR if status is HTTPStatus.OK else DENIED_FOR
        self._results[digest] = _CachedResult(status, self._clock.monotonic() + lifetime)
        self._results.move_to_end(digest)
        while len(self._results) > CACHED_RESULTS:
            self._results.popitem(last=False)


class MetricsServer:
    """Serves the output of `render` to the clients that `guard` authorizes."""

    def __init__(
        self,
        bind: Bind,
        render: Callable[[], bytes],
        guard: Guard,
        *,
        certificate: ServingCertificate | None = None,
    ) -> None:
        self._render = render
        self._guard = guard
        context = certificate.context if certificate else None
        self._server = HttpServer(bind, {PATH: self._metrics}, context=context)

    @property
    def port(self) -> int:
        return self._server.port

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        status = await self._guard.authorize(request.headers.get("Authorization", ""))
        if status is HTTPStatus.OK:
            return web.Response(body=self._render(), headers={"Content-Type": CONTENT_TYPE})
        headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else None
        return web.Response(status=status, text=f"{status.phrase}\n", headers=headers)
