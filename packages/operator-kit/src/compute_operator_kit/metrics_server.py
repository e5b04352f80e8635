"""`/metrics` on its own address, with TLS and the API server's own say on who may read it.

Secure serving asks the home plane who a bearer is (TokenReview) and whether they may `get` the path
`/metrics` (SubjectAccessReview): 401, 403 or 200, and 503 when the plane cannot be asked, never an
open door. Verdicts are remembered for a short while under a digest of the token; the token itself
is kept nowhere.
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

from compute_operator_kit.certificates import ServingCertificate
from compute_operator_kit.clock import Clock
from compute_operator_kit.errors import ReconcileError
from compute_operator_kit.http_server import HttpServer
from compute_operator_kit.keys import Kind
from compute_operator_kit.settings import Bind
from compute_operator_kit.wire import JsonMapping, JsonObject, member_object, member_text

PATH: Final = "/metrics"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"  # Prometheus' text format
TOKEN_REVIEW: Final = Kind(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
# A scrape comes every 15 to 60 s and must not cost two reviews each; a revoked reader may read for
# one minute more.
REMEMBER_YES: Final = timedelta(seconds=60)
REMEMBER_NO: Final = timedelta(seconds=10)
REMEMBERED: Final = 256
REVIEWS_AT_ONCE: Final = 4  # strangers with bad tokens must not flood the home plane through us
MAX_TOKEN: Final = 16384


class Reviewer(Protocol):
    """The part of the port `Kube` that answers questions."""

    async def review(self, kind: Kind, body: JsonMapping) -> JsonObject: ...


class Guard(Protocol):
    """Says with which status a request for metrics is met."""

    async def judge(self, authorization: str) -> HTTPStatus: ...


class OpenGuard:
    """Lets everybody in: `secureServing: false`."""

    async def judge(self, authorization: str) -> HTTPStatus:  # noqa: ARG002  # the port has it
        return HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class _Verdict:
    status: HTTPStatus
    until: timedelta


class ReviewGuard:
    """Asks the home plane."""

    def __init__(self, reviewer: Reviewer, clock: Clock) -> None:
        self._reviewer = reviewer
        self._clock = clock
        self._verdicts: OrderedDict[bytes, _Verdict] = OrderedDict()
        self._turn = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def judge(self, authorization: str) -> HTTPStatus:
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > MAX_TOKEN:
            return HTTPStatus.UNAUTHORIZED
        digest = hashlib.sha256(token.encode()).digest()
        # Before the turn: a known reader does not wait behind a crowd of bad tokens.
        if (remembered := self._recall(digest)) is not None:
            return remembered
        async with self._turn:
            # Another request with the same token may have been answered meanwhile.
            if (remembered := self._recall(digest)) is not None:
                return remembered
            try:
                status = await self._review(token)
            except ReconcileError:
                return HTTPStatus.SERVICE_UNAVAILABLE  # not remembered: nothing was learnt
            self._remember(digest, status)
            return status

    def _recall(self, digest: bytes) -> HTTPStatus | None:
        verdict = self._verdicts.get(digest)
        is_current = verdict is not None and self._clock.monotonic() < verdict.until
        return verdict.status if verdict is not None and is_current else None

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

    def _remember(self, digest: bytes, status: HTTPStatus) -> None:
        how_long = REMEMBER_YES if status is HTTPStatus.OK else REMEMBER_NO
        self._verdicts[digest] = _Verdict(status, self._clock.monotonic() + how_long)
        self._verdicts.move_to_end(digest)
        while len(self._verdicts) > REMEMBERED:
            self._verdicts.popitem(last=False)


class MetricsServer:
    """Serves what `render` gives to whom `guard` lets in."""

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
        status = await self._guard.judge(request.headers.get("Authorization", ""))
        if status is HTTPStatus.OK:
            return web.Response(body=self._render(), headers={"Content-Type": CONTENT_TYPE})
        headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else None
        return web.Response(status=status, text=f"{status.phrase}\n", headers=headers)
