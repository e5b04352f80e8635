"""Clients that send an AdmissionReview to a webhook: over HTTPS, or to a function in this process.

In virtual time there are no sockets, so webhooks are functions in a table, by the address in their
configuration. Both clients apply the timeout and raise one error with the message of a real server.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import aiohttp
import orjson

from compute_sim_planes.json_types import JsonObject, JsonValue


class WebhookCallError(Exception):
    """The webhook gave no review: unreachable, timed out, or answered with something else."""


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """A Service of the plane; the caller maps it to an address."""

    namespace: str
    name: str
    port: int


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """The address of a webhook: a URL, or a path of a Service."""

    url: str
    service: ServiceReference | None
    path: str
    authority: bytes

    @property
    def address(self) -> str:
        """The URL a real server would call."""
        if self.service is None:
            return self.url
        host = f"{self.service.name}.{self.service.namespace}.svc"
        return f"https://{host}:{self.service.port}{self.path}"


class WebhookCaller(Protocol):
    async def call(self, target: WebhookTarget, review: JsonObject, within: timedelta) -> JsonValue:
        """The reply to a review; raises `WebhookCallError`."""
        ...

    async def close(self) -> None: ...


# A webhook as a function: AdmissionReview with a request in, AdmissionReview with a response out.
WebhookFunction = Callable[[JsonObject], Awaitable[JsonObject]]


class RegisteredWebhooks:
    """Webhook functions by address; an address without one behaves as a refused connection."""

    def __init__(self) -> None:
        self.webhooks: dict[str, WebhookFunction] = {}

    async def call(self, target: WebhookTarget, review: JsonObject, within: timedelta) -> JsonValue:
        webhook = self.webhooks.get(target.address)
        if webhook is None:
            raise WebhookCallError(f'Post "{target.address}": dial tcp: connection refused')
        try:
            async with asyncio.timeout(within.total_seconds()):
                # Through bytes, so that the two sides share no objects, as over a network.
                answered = await webhook(orjson.loads(orjson.dumps(review)))
        except TimeoutError as error:
            raise WebhookCallError(f'Post "{target.address}": context deadline exceeded') from error
        parsed: JsonValue = orjson.loads(orjson.dumps(answered))
        return parsed

    async def close(self) -> None:
        """No connection is held open."""


class HttpWebhooks:
    """Webhook calls over HTTPS that trust only the CA bundle of the configuration."""

    def __init__(self, services: dict[ServiceReference, str] | None = None) -> None:
        # URLs by Service: there is no cluster network that would resolve them.
        self.services = services if services is not None else {}
        self._session: aiohttp.ClientSession | None = None
        # One context per CA bundle: creating it for every call would cost more than the call.
        self._contexts: dict[bytes, ssl.SSLContext] = {}

    async def call(self, target: WebhookTarget, review: JsonObject, within: timedelta) -> JsonValue:
        seconds = within.total_seconds()
        url = f"{self._locate(target)}?timeout={seconds:g}s"
        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with self._session.post(
                url,
                data=orjson.dumps(review),
                headers={"Content-Type": "application/json"},
                ssl=self._context(target.authority),
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as answer:
                body = await answer.read()
                if answer.status != 200:
                    raise WebhookCallError(f"an error on the server ({answer.status})")
                parsed: JsonValue = orjson.loads(body)
                return parsed
        except TimeoutError as error:
            raise WebhookCallError(f'Post "{url}": context deadline exceeded') from error
        except (aiohttp.ClientError, OSError, ssl.SSLError, orjson.JSONDecodeError) as error:
            raise WebhookCallError(f'Post "{url}": {error}') from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _locate(self, target: WebhookTarget) -> str:
        if target.service is None:
            return target.url
        base = self.services.get(target.service)
        if base is None:
            raise WebhookCallError(f'Post "{target.address}": no endpoints available for service')
        return base + target.path

    def _context(self, authority: bytes) -> ssl.SSLContext:
        existing = self._contexts.get(authority)
        if existing is None:
            existing = ssl.create_default_context(cadata=authority.decode() if authority else None)
            self._contexts[authority] = existing
        return existing
