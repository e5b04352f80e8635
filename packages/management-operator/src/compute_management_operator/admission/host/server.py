"""The HTTPS server in front of kopf's admission handlers: certificate, limits, metrics, answers.

kopf's own server has no bound on connections or request size and answers an unknown path with
"allowed". This one refuses such requests before kopf sees them, gives a refusal its whole `Status`
and never sends the text of an exception.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import kopf
from aiohttp import web

from compute_management_operator.admission.host.admission_review import (
    LARGEST_REVIEW,
    as_creation,
    complete_answer,
    parse_review,
)
from compute_operator_kit.config.settings import Bind
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.json import JsonMapping, UndecodableError
from compute_operator_kit.core.keys import Kind
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.process.certificates import ServingCertificate
from compute_operator_kit.process.http_server import ConnectionLimits, HttpServer

READ_WITHIN: Final = timedelta(seconds=5)  # the API server's own timeout
# 500 reviews at once (faults.md S11) and room for new connections. An API server closes a
# connection after 90 s without a request; it must close first, or its next request meets our close.
LIMITS: Final = ConnectionLimits(connections=640, idle=timedelta(seconds=100))
WEBHOOK_REQUESTS: Final = "controller_runtime_webhook_requests_total"
WEBHOOK_SECONDS: Final = "controller_runtime_webhook_latency_seconds"
WEBHOOK_IN_FLIGHT: Final = "controller_runtime_webhook_requests_in_flight"

# The whole `Status` of a refusal, left here by the handler: kopf carries only message and code.
_refusals: ContextVar[list[JsonMapping] | None] = ContextVar("admission refusals", default=None)


def admission_refusal(status: JsonMapping) -> kopf.AdmissionError:
    """The exception with which an admission handler refuses with this `Status`."""
    refusals = _refusals.get()
    if refusals is not None:
        refusals.append(status)
    return kopf.AdmissionError(str(status.get("message", "")), _code_of(status))


def _code_of(status: JsonMapping) -> int:
    code = status.get("code")
    return code if isinstance(code, int) else 500


@dataclass(frozen=True, slots=True)
class Webhook:
    """Address and handlers of the server. A name is the path of a webhook and the id of its
    handler.
    """

    bind: Bind
    certificate: ServingCertificate
    names: Sequence[str]
    admits: Sequence[Kind]
    read_within: timedelta = READ_WITHIN


class AdmissionServer:
    """A `kopf.WebhookServerProtocol`: calls kopf for each review and sends its answer."""

    def __init__(self, webhook: Webhook, clock: Clock, measures: MetricsPort) -> None:
        self._webhook = webhook
        self._clock = clock
        self._measures = measures
        self._in_flight = 0
        self.is_bound = False

    async def __call__(self, fn: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        async def answer(request: web.BaseRequest) -> web.Response:
            return await self._answer(fn, request)

        server = HttpServer(
            self._webhook.bind,
            {f"/{name}": answer for name in self._webhook.names},
            method="POST",
            context=self._webhook.certificate.context,
            limits=LIMITS,
        )
        await server.start()
        try:
            self.is_bound = True
            # kopf registers nothing with it (`settings.admission.managed`).
            yield kopf.WebhookClientConfig(url=f"https://localhost:{server.port}")
            await asyncio.Event().wait()
        finally:
            self.is_bound = False
            await server.stop()

    async def _answer(self, fn: kopf.WebhookFn, request: web.BaseRequest) -> web.Response:
        name = request.path.removeprefix("/")
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType
        began = self._clock.monotonic()
        self._report_in_flight(name, +1)
        try:
            return await self._review(fn, request, name)
        finally:
            self._report_in_flight(name, -1)
            took = self._clock.monotonic() - began
            self._measures.count(WEBHOOK_REQUESTS, webhook=name)
            self._measures.observe(WEBHOOK_SECONDS, took.total_seconds(), webhook=name)

    def _report_in_flight(self, name: str, change: int) -> None:
        self._in_flight += change
        self._measures.gauge(WEBHOOK_IN_FLIGHT, self._in_flight, webhook=name)

    async def _review(
        self, fn: kopf.WebhookFn, request: web.BaseRequest, name: str
    ) -> web.Response:
        # aiohttp's own limit of 1 MiB would refuse updates of large objects that the API server
        # accepts.
        try:
            async with asyncio.timeout(self._webhook.read_within.total_seconds()):
                raw = await request.clone(client_max_size=LARGEST_REVIEW).read()
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        try:
            review: Any = as_creation(parse_review(raw))
        except UndecodableError as refused:
            raise web.HTTPBadRequest(text=str(refused)) from None
        refusals: list[JsonMapping] = []
        token = _refusals.set(refusals)
        try:
            answer: Any = await fn(review, webhook=kopf.HandlerId(name), headers={}, sslpeer={})
        finally:
            _refusals.reset(token)
        return web.json_response(complete_answer(answer, refusals))
