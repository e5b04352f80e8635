"""The webhook server in front of kopf's admission handlers: our certificate, limits, metrics and
full answers.

Refuses what is no review of ours before kopf sees it, gives a refusal its whole `Status`, and keeps
the text of exceptions inside. Who is admitted is for the handlers to say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import kopf
from aiohttp import web

from compute_operator_kit.admission_review import (
    LARGEST_REVIEW,
    complete_answer,
    parse_review,
)
from compute_operator_kit.certificates import ServingCertificate
from compute_operator_kit.clock import Clock
from compute_operator_kit.http_server import ConnectionLimits, HttpServer
from compute_operator_kit.keys import Kind
from compute_operator_kit.measures import Measures
from compute_operator_kit.settings import Bind
from compute_operator_kit.wire import JsonMapping, UndecodableError

READ_WITHIN: Final = timedelta(seconds=5)  # after that the API server has given up
# 500 reviews at once (faults.md S11) and room for those that connect anew. An API server closes a
# connection after 90 s without a request; it closes first, or its next request would meet ours.
LIMITS: Final = ConnectionLimits(connections=640, idle=timedelta(seconds=100))
WEBHOOK_REQUESTS: Final = "controller_runtime_webhook_requests_total"
WEBHOOK_SECONDS: Final = "controller_runtime_webhook_latency_seconds"
WEBHOOK_IN_FLIGHT: Final = "controller_runtime_webhook_requests_in_flight"


def _is_failure(record: logging.LogRecord) -> bool:
    """A handler that broke; a refusal is no news, and its text repeats what the user wrote."""
    return bool(record.exc_info)


logging.getLogger("kopf.objects").addFilter(_is_failure)

# Where a handler leaves the full answer it wants to give; kopf itself only carries message and
# code.
_refusals: ContextVar[list[JsonMapping] | None] = ContextVar("admission refusals", default=None)


def admission_refusal(status: JsonMapping) -> kopf.AdmissionError:
    """What an admission handler raises to refuse with this `Status` (code, reason, message,
    details).
    """
    refusals = _refusals.get()
    if refusals is not None:
        refusals.append(status)
    return kopf.AdmissionError(str(status.get("message", "")), _code_of(status))


def _code_of(status: JsonMapping) -> int:
    code = status.get("code")
    return code if isinstance(code, int) else 500


@dataclass(frozen=True, slots=True)
class Webhook:
    """The admission server. Every name is the path of one webhook and the id of one handler."""

    bind: Bind
    certificate: ServingCertificate
    names: Sequence[str]
    admits: Sequence[Kind]
    read_within: timedelta = READ_WITHIN


class AdmissionServer:
    """Gives kopf the reviews that arrive, and the API server kopf's answers."""

    def __init__(self, webhook: Webhook, clock: Clock, measures: Measures) -> None:
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
        """One review; refused before kopf sees it when it cannot be one."""
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
            review: Any = parse_review(raw)
        except UndecodableError as refused:
            raise web.HTTPBadRequest(text=str(refused)) from None
        refusals: list[JsonMapping] = []
        token = _refusals.set(refusals)
        try:
            answer: Any = await fn(review, webhook=kopf.HandlerId(name), headers={}, sslpeer={})
        finally:
            _refusals.reset(token)
        return web.json_response(complete_answer(answer, refusals))
