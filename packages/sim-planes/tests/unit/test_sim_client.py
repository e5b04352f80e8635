from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from compute_sim_planes.api_server.http.transport import BytesResponse, Response
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ExpiredError,
    InvalidError,
    NotFoundError,
    ThrottledError,
    WatchEndedError,
    error_of,
)
from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.client.reflector import Delta, list_and_watch
from compute_sim_planes.client.rest import Client, ListOptions, Resource
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at
from compute_sim_planes.time.clock import VirtualClock, run

START = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
CONFIG = Resource("", "v1", "configmaps", "ConfigMap")
DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    is_namespaced=False,
)
CLAIMS = Resource("quota.miloapis.com", "v1alpha1", "resourceclaims", "ResourceClaim")


def a_config(name: str = "a", **data: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"name": name}},
        "data": {**data},
    }


def on_plane(body: Callable[[Client, Plane, VirtualClock], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        plane = Plane("p", PlaneParts(clock=clock, identities=clock))
        try:
            await body(Client(plane.connect(), manager="external"), plane, clock)
        finally:
            await plane.close()

    run(main, seed=1, start=START)


def test_objects_are_written_read_and_deleted() -> None:
    async def body(client: Client, plane: Plane, clock: VirtualClock) -> None:
        del plane, clock
        assert await client.get(CONFIG, "a", "default") is None
        made = await client.create(CONFIG, a_config(k="v"))
        object_at(made, "data")["k"] = "w"
        await client.update(CONFIG, made)
        existing = await client.get(CONFIG, "a", "default")
        assert object_at(existing, "data") == {"k": "w"}
        with pytest.raises(ConflictError):
            await client.update(CONFIG, made)
        with pytest.raises(AlreadyExistsError):
            await client.create(CONFIG, a_config())
        with pytest.raises(ConflictError):
            await client.delete(CONFIG, "a", namespace="default", uid="another")
        uid = string_at(existing, "metadata", "uid")
        assert await client.delete(CONFIG, "a", namespace="default", uid=uid)
        assert not await client.delete(CONFIG, "a", namespace="default")

    on_plane(body)


def test_patch_types_are_distinguished_by_their_form() -> None:
    async def body(client: Client, plane: Plane, clock: VirtualClock) -> None:
        del plane, clock
        await client.create(CONFIG, a_config(k="v"))
        merged = await client.patch(CONFIG, "a", {"data": {"l": "w"}}, namespace="default")
        assert object_at(merged, "data") == {"k": "v", "l": "w"}
        operation: JsonObject = {"op": "remove", "path": "/data/k"}
        patched = await client.patch(CONFIG, "a", [operation], namespace="default")
        assert object_at(patched, "data") == {"l": "w"}
        with pytest.raises(InvalidError):
            await client.patch(CONFIG, "a", [operation], namespace="default")

    on_plane(body)


def test_an_apply_carries_our_name_and_status_is_written_apart() -> None:
    async def body(client: Client, plane: Plane, clock: VirtualClock) -> None:
        del plane
        for crd in load_crds("milo"):
            await client.create(DEFINITIONS, crd)
        await clock.sleep(timedelta(seconds=1))
        consumer: JsonObject = {"apiGroup": "g", "kind": "Project", "name": "p"}
        claim: JsonObject = {
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {
                "consumerRef": consumer,
                "resourceRef": consumer,
                "requests": [{"resourceType": "a/b", "amount": 1}],
            },
        }
        made = await client.apply(CLAIMS, claim)
        (entry,) = objects_at(made, "metadata", "managedFields")
        assert (entry["manager"], entry["operation"]) == ("external", "Apply")
        (condition,) = objects_at(made, "status", "conditions")
        assert condition["reason"] == "PendingEvaluation"
        condition.update(status="True", reason="QuotaAvailable")
        reported = await client.update_status(CLAIMS, made)
        (condition,) = objects_at(reported, "status", "conditions")
        assert condition["reason"] == "QuotaAvailable"
        assert reported["spec"] == made["spec"]

    on_plane(body)


def test_lists_are_read_page_by_page_and_selected() -> None:
    async def body(client: Client, plane: Plane, clock: VirtualClock) -> None:
        del plane, clock
        for number in range(1203):
            await client.create(CONFIG, a_config(f"c{number:04}"))
        everything = await client.list(CONFIG, ListOptions("default"))
        one = await client.list(CONFIG, ListOptions(labels="name=c0007"))
        assert len(everything.items) == 1203
        assert [string_at(item, "metadata", "name") for item in one.items] == ["c0007"]
        assert string_at(one.items[0], "kind") == "ConfigMap"

    on_plane(body)


def test_a_watch_delivers_events_after_its_version() -> None:
    async def body(client: Client, plane: Plane, clock: VirtualClock) -> None:
        del plane, clock
        listing = await client.list(CONFIG, ListOptions("default"))
        await client.create(CONFIG, a_config(k="v"))
        await client.delete(CONFIG, "a", namespace="default")
        received: list[str] = []
        async with aclosing(client.watch(CONFIG, listing.version)) as events:
            async for event in events:
                received.append(event.type)
                if event.type == "DELETED":
                    break
        assert received == ["ADDED", "DELETED"]

    on_plane(body)


def test_a_compacted_version_has_its_own_error() -> None:
    async def body(client: Client, plane: Plane, clock: VirtualClock) -> None:
        del clock
        listing = await client.list(CONFIG, ListOptions("default"))
        await client.create(CONFIG, a_config())
        plane.state.store.compact()
        with pytest.raises(ExpiredError):
            async with aclosing(client.watch(CONFIG, listing.version)) as events:
                await anext(events)

    on_plane(body)


def test_what_was_deleted_while_no_watch_was_open_is_noticed() -> None:
    async def body(client: Client, plane: Plane, clock: VirtualClock) -> None:
        received: list[str] = []
        await client.create(CONFIG, a_config("kept"))
        await client.create(CONFIG, a_config("lost"))
        await client.create(CONFIG, a_config("remade"))

        async def listen() -> None:
            selection = ListOptions("default", labels="name")
            async with aclosing(list_and_watch(client, CONFIG, selection)) as seen:
                async for one in seen:
                    received.append(render_delta(one))  # noqa: PERF401 -- read while it still grows

        listening = asyncio.create_task(listen())
        await clock.sleep(timedelta(seconds=1))
        assert sorted(received) == ["+kept", "+lost", "+remade"]
        received.clear()
        for stream in tuple(plane.state.streams):
            stream.end()
        await client.delete(CONFIG, "lost", namespace="default")
        await client.delete(CONFIG, "remade", namespace="default")
        await client.create(CONFIG, a_config("remade", k="2"))
        plane.state.store.compact()
        await clock.sleep(timedelta(seconds=5))
        assert sorted(received) == ["+remade", "-lost", "-remade"]
        assert received.index("-remade") < received.index("+remade")
        listening.cancel()
        await asyncio.wait([listening])

    on_plane(body)


def test_a_follower_sees_every_change_and_outlives_watches_that_end() -> None:
    async def body(client: Client, plane: Plane, clock: VirtualClock) -> None:
        received: list[str] = []

        async def listen() -> None:
            async with aclosing(
                list_and_watch(client, CONFIG, ListOptions("default", "name"))
            ) as seen:
                async for one in seen:
                    received.append(render_delta(one))  # noqa: PERF401 -- read while it still grows

        listening = asyncio.create_task(listen())
        await clock.sleep(timedelta(seconds=1))
        made = await client.create(CONFIG, a_config(k="1"))
        object_at(made, "data")["k"] = "2"
        await client.update(CONFIG, made)
        await client.delete(CONFIG, "a", namespace="default")
        await clock.sleep(timedelta(hours=2))
        await client.create(CONFIG, a_config("later"))
        await clock.sleep(timedelta(minutes=1))
        assert received == ["+a", "+a", "-a", "+later"]
        assert len(plane.state.streams) == 1
        listening.cancel()
        await asyncio.wait([listening])
        assert not plane.state.streams

    on_plane(body)


def test_a_kind_that_is_not_served_yet_is_waited_for() -> None:
    async def body(client: Client, plane: Plane, clock: VirtualClock) -> None:
        del plane
        listening = asyncio.create_task(_first(client))
        await clock.sleep(timedelta(minutes=1))
        assert not listening.done()
        for crd in load_crds("milo"):
            await client.create(DEFINITIONS, crd)
        await clock.sleep(timedelta(seconds=1))
        consumer: JsonObject = {"apiGroup": "g", "kind": "Project", "name": "p"}
        claim: JsonObject = {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {
                "consumerRef": consumer,
                "resourceRef": consumer,
                "requests": [{"resourceType": "a/b", "amount": 1}],
            },
        }
        await client.create(CLAIMS, claim)
        seen = await listening
        assert string_at(seen.object, "metadata", "name") == "c"

    on_plane(body)


async def _first(client: Client) -> Delta:
    async with aclosing(list_and_watch(client, CLAIMS)) as seen:
        return await anext(seen)


def render_delta(one: Delta) -> str:
    return f"{'-' if one.is_deleted else '+'}{string_at(one.object, 'metadata', 'name')}"


class ScriptedTransport:
    """Answers every request with the same bytes."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body
        self.targets: list[str] = []

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        del method, headers, body
        self.targets.append(target)
        return BytesResponse(self.status, {}, self.body)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (b'{"type":"ADDED","object":{}}\n{"type":"AD', WatchEndedError),
        (b"\xff\xfe not json\n", WatchEndedError),
        (b'{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n', ExpiredError),
        (b'{"type":"ERROR","object":{}}\n', ApiError),
    ],
)
async def test_a_broken_stream_ends_with_an_error(lines: bytes, error: type[Exception]) -> None:
    client = Client(ScriptedTransport(200, lines), manager="m")

    async with aclosing(client.watch(CONFIG, "1")) as events:
        with pytest.raises(error):
            [event async for event in events]


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        (404, "NotFound", NotFoundError),
        (409, "AlreadyExists", AlreadyExistsError),
        (409, "Conflict", ConflictError),
        (429, "TooManyRequests", ThrottledError),
        (500, "InternalError", ApiError),
    ],
)
def test_refusals_have_a_type_each(status: int, reason: str, error: type[ApiError]) -> None:
    parsed = error_of(status, b'{"reason":"%s","message":"m"}' % reason.encode())

    assert type(parsed) is error
    assert (parsed.status, parsed.reason, parsed.message) == (status, reason, "m")


def test_an_error_without_a_status_body_has_its_code() -> None:
    assert error_of(502, b"<html>").status == 502


async def test_names_are_one_segment_and_planes_may_lie_under_a_path() -> None:
    transport = ScriptedTransport(404, b"{}")
    client = Client(transport, manager="m", prefix="/projects/p/control-plane/")

    await client.get(CONFIG, "../../secrets/x?y#z", "a/b")

    assert transport.targets == [
        (
            "/projects/p/control-plane/api/v1/namespaces/a%2Fb/configmaps/"
            "..%2F..%2Fsecrets%2Fx%3Fy%23z"
        )
    ]


async def test_over_http_the_same_client_sends_and_streams() -> None:
    asked: list[tuple[str, str, str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append((request.method, request.path_qs, request.headers["Authorization"]))
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b'{"type":"ADDED","obj')
            await response.write(b'ect":{"metadata":{"name":"a"}}}\n')
            return response
        return web.json_response({"metadata": {"name": "a"}})

    server = web.Application()
    server.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    transport = HttpTransport(f"http://127.0.0.1:{port}", token="secret")  # noqa: S106 -- of a server in this test
    client = Client(transport, manager="m")
    try:
        existing = await client.get(CONFIG, "a", "default")
        async with aclosing(client.watch(CONFIG, "5")) as events:
            received = [event.type async for event in events]
    finally:
        await transport.close()
        await runner.cleanup()

    assert string_at(existing, "metadata", "name") == "a"
    assert received == ["ADDED"]
    assert asked[0] == ("GET", "/api/v1/namespaces/default/configmaps/a", "Bearer secret")
