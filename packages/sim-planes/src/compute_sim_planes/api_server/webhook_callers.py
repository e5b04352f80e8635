"""How a review reaches a webhook: over HTTPS as a real server does it, or to a function in this
process.

Under virtual time there are no sockets, so webhooks are functions in a table, under the address the
configuration names. Either way a call has a deadline, and whatever goes wrong is one error with the
words of a real server.
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
    """The webhook gave no review: not there, too late, or something else came back."""


@dataclass(frozen=True, slots=True)
class Service:
    """A Service of the plane; what answers behind it is for the caller to know."""

    namespace: str
    name: str
    port: int


@dataclass(frozen=True, slots=True)
class Target:
    """Where a webhook listens: at a URL, or at a path of a service."""

    url: str
    service: Service | None
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
    async def call(self, target: Target, review: JsonObject, within: timedelta) -> JsonValue:
        """The reply to a review; raises `WebhookCallError`."""
        ...

    async def close(self) -> None: ...


# A webhook as a function: the review that is asked for, the review that answers.
Webhook = Callable[[JsonObject], Awaitable[JsonObject]]


class RegisteredWebhooks:
    """Functions by the address their configuration names; an address without one refuses the
    connection.
    """

    def __init__(self) -> None:
        self.webhooks: dict[str, Webhook] = {}

    async def call(self, target: Target, review: JsonObject, within: timedelta) -> JsonValue:
        webhook = self.webhooks.get(target.address)
        if webhook is None:
            raise WebhookCallError(f'Post "{target.address}": dial tcp: connection refused')
        try:
            async with asyncio.timeout(within.total_seconds()):
                # Through bytes, so that the two sides share nothing, as over a wire.
                answered = await webhook(orjson.loads(orjson.dumps(review)))
        except TimeoutError as error:
            raise WebhookCallError(f'Post "{target.address}": context deadline exceeded') from error
        parsed: JsonValue = orjson.loads(orjson.dumps(answered))
        return parsed

    async def close(self) -> None:
        """Nothing is held open."""


class HttpWebhooks:
    """Calls over HTTPS, trusting exactly the authority the configuration carries."""

    def __init__(self, services: dict[Service, str] | None = None) -> None:
        # Where a service of the plane really is: there is no cluster network to find it on.
        self.services = services if services is not None else {}
        self._session: aiohttp.ClientSession | None = None
        # One context per authority: a new one for every call would cost more than the call.
        self._contexts: dict[bytes, ssl.SSLContext] = {}

    async def call(self, target: Target, review: JsonObject, within: timedelta) -> JsonValue:
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

    def _locate(self, target: Target) -> str:
        if target.service is None:
            return target.url
        base = self.services.get(target.service)
        if base is None:
            raise WebhookCallError(f'Post "{target.address}": no endpoints available for service')
        return base + target.path

    def _context(self, authority: bytes) -> ssl.SSLContext:
        found = self._contexts.get(authority)
        if found is None:
            found = ssl.create_default_context(cadata=authority.decode() if authority else None)
            self._contexts[authority] = found
        return found
