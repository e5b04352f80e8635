"""A plain HTTP client and helpers for contract tests of API servers.

The same tests run against the simulated server and a real kube-apiserver, so nothing here may
depend on which one it is. Waits use wall time, as a real server does.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Final, TypeVar
from urllib.parse import urlencode

import aiohttp
import orjson

from compute_sim_planes.api_server.http.transport import Transport, read_body
from compute_sim_planes.api_server.plane import Plane, PlaneParts, UserTransport
from compute_sim_planes.json_types import JsonObject, JsonValue, integer_at, object_at, string_at
from compute_sim_planes.time.clock import VirtualClock, run

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
START: Final = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
USER_AGENT: Final = "contract-tests/1.0"

_PATIENCE: Final = timedelta(seconds=20)
_POLL: Final = 0.02

StoryT = TypeVar("StoryT")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server, its CA, and an administrator's token."""

    url: str
    token: str
    authority: bytes | None = None

    def context(self) -> ssl.SSLContext | bool:
        if self.authority is None:
            return True
        return ssl.create_default_context(cadata=self.authority.decode())


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    warnings: tuple[str, ...] = ()

    @property
    def body(self) -> JsonObject:
        """The object in the body; empty when there is none."""
        try:
            parsed: JsonValue = orjson.loads(self.raw)
        except orjson.JSONDecodeError:
            return {}
        return parsed if isinstance(parsed, dict) else {}

    @property
    def reason(self) -> str:
        return string_at(self.body, "reason")

    @property
    def message(self) -> str:
        return string_at(self.body, "message")

    @property
    def details(self) -> JsonObject:
        return object_at(self.body, "details")

    def expect(self, *statuses: int) -> JsonObject:
        """The body; fails unless the status is one of these."""
        if self.status not in statuses:
            raise AssertionError(f"{self.status} instead of {statuses}: {self.raw[:2000]!r}")
        return self.body


@dataclass(slots=True)
class WatchReader:
    """The events of one watch."""

    response: aiohttp.ClientResponse

    async def next_event(self, within: timedelta = _PATIENCE) -> JsonObject:
        """The next event; fails when the stream ends instead."""
        event: JsonObject = orjson.loads(await self.next_line(within))
        return event

    async def next_line(self, within: timedelta = _PATIENCE) -> bytes:
        """The next event as the line that was sent."""
        async with asyncio.timeout(within.total_seconds()):
            line = await self.response.content.readline()
        if not line:
            raise AssertionError("the watch ended")
        return line

    async def rest(self, within: timedelta = _PATIENCE) -> list[JsonObject]:
        """All events up to the end of the stream."""
        events: list[JsonObject] = []
        async with asyncio.timeout(within.total_seconds()):
            while line := await self.response.content.readline():
                events.append(orjson.loads(line))
        return events


@dataclass(slots=True)
class Api:
    """A server as seen by one user."""

    session: aiohttp.ClientSession
    address: ServerAddress
    context: ssl.SSLContext | bool
    headers: dict[str, str] = field(default_factory=dict)

    def impersonating(self, user: str, group: str = "") -> Api:
        """The same server as seen by another user, by impersonation."""
        headers = {**self.headers, "Impersonate-User": user}
        if group:
            headers["Impersonate-Group"] = group
        return Api(self.session, self.address, self.context, headers)

    def with_headers(self, **headers: str) -> Api:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Api(self.session, self.address, self.context, {**self.headers, **named})

    async def send(
        self, method: str, path: str, body: JsonValue | bytes = None, content_type: str = JSON
    ) -> ApiResponse:
        headers = dict(self.headers)
        payload: BytesIO | None = None
        if body is not None:
            # As a file, because aiohttp warns about large bodies of bytes.
            payload = BytesIO(body if isinstance(body, bytes) else orjson.dumps(body))
            headers["Content-Type"] = content_type
        async with self.session.request(
            method, self.address.url + path, data=payload, headers=headers, ssl=self.context
        ) as answer:
            warnings = tuple(answer.headers.getall("Warning", ()))
            return ApiResponse(answer.status, answer.headers, await answer.read(), warnings)

    async def get(self, path: str, **query: str | int) -> ApiResponse:
        return await self.send("GET", _with_query(path, query))

    async def post(self, path: str, body: JsonValue, **query: str | int) -> ApiResponse:
        return await self.send("POST", _with_query(path, query), body)

    async def put(self, path: str, body: JsonValue, **query: str | int) -> ApiResponse:
        return await self.send("PUT", _with_query(path, query), body)

    async def delete(self, path: str, body: JsonValue = None, **query: str | int) -> ApiResponse:
        return await self.send("DELETE", _with_query(path, query), body)

    async def merge(self, path: str, body: JsonValue, **query: str | int) -> ApiResponse:
        return await self.send("PATCH", _with_query(path, query), body, MERGE_PATCH)

    async def json_patch(self, path: str, body: JsonValue, **query: str | int) -> ApiResponse:
        return await self.send("PATCH", _with_query(path, query), body, JSON_PATCH)

    async def apply(
        self, path: str, body: JsonValue, manager: str, **query: str | int
    ) -> ApiResponse:
        asked = _with_query(path, {"fieldManager": manager, **query})
        return await self.send("PATCH", asked, body, APPLY_PATCH)

    @asynccontextmanager
    async def watch(self, path: str, **query: str | int) -> AsyncGenerator[WatchReader, None]:
        url = self.address.url + _with_query(path, {"watch": "true", **query})
        async with self.session.get(url, headers=self.headers, ssl=self.context) as answer:
            if answer.status != 200:
                raise AssertionError(f"no watch: {answer.status} {await answer.text()}")
            yield WatchReader(answer)


def _with_query(path: str, query: Mapping[str, str | int]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


async def ask(
    transport: Transport,
    method: str,
    target: str,
    body: JsonValue | bytes = None,
    content_type: str = JSON,
) -> ApiResponse:
    """One request to a plane in this process, for tests in virtual time."""
    headers = {"User-Agent": USER_AGENT}
    payload: bytes | None = None
    if body is not None:
        payload = body if isinstance(body, bytes) else orjson.dumps(body)
        headers["Content-Type"] = content_type
    answer = await transport.request(method, target, headers, payload)
    warning = answer.headers.get("Warning")
    raw = await read_body(answer)
    return ApiResponse(answer.status, answer.headers, raw, (warning,) if warning else ())


@dataclass(frozen=True, slots=True)
class World:
    """One plane in virtual time, and a connection of its administrator."""

    clock: VirtualClock
    plane: Plane
    admin: UserTransport


def in_virtual_time(
    story: Callable[[World], Coroutine[object, object, StoryT]],
    parts: PlaneParts | None = None,
    *,
    seed: int = 1,
) -> StoryT:
    """Run a coroutine with one plane in virtual time and return its result."""

    async def main(clock: VirtualClock) -> StoryT:
        made = PlaneParts() if parts is None else parts
        plane = Plane("plane", replace(made, clock=clock, identities=clock.identities))
        try:
            return await story(World(clock, plane, plane.connect()))
        finally:
            await plane.close()

    return run(main, seed=seed, start=START)


async def eventually(
    ask: Callable[[], Awaitable[ApiResponse]],
    holds: Callable[[ApiResponse], bool],
    within: timedelta = _PATIENCE,
) -> ApiResponse:
    """The first response that satisfies the predicate; fails with the last one that did not."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within.total_seconds()
    while True:
        reply = await ask()
        if holds(reply):
            return reply
        if loop.time() > deadline:
            raise AssertionError(f"never came true: {reply.status} {reply.raw[:2000]!r}")
        await asyncio.sleep(_POLL)


@asynccontextmanager
async def connect(address: ServerAddress) -> AsyncGenerator[Api, None]:
    headers = {"Authorization": f"Bearer {address.token}", "User-Agent": USER_AGENT}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield Api(session, address, address.context())


def a_widget(
    name: str = "one", spec: JsonObject | None = None, **metadata: JsonValue
) -> JsonObject:
    """A valid object of the kind that the contract tests define."""
    return {
        "apiVersion": "contract.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, **metadata},
        "spec": {"size": 1} if spec is None else spec,
    }


def a_config_map(
    name: str = "one", data: JsonObject | None = None, **metadata: JsonValue
) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"key": "value"} if data is None else data,
    }


def metadata_of(document: JsonObject) -> JsonObject:
    return object_at(document, "metadata")


def version_of(document: JsonObject) -> str:
    return string_at(document, "metadata", "resourceVersion")


def uid_of(document: JsonObject) -> str:
    return string_at(document, "metadata", "uid")


def generation_of(document: JsonObject) -> int | None:
    return integer_at(document, "metadata", "generation")
