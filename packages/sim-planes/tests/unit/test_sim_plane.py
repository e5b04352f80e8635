"""A plane in virtual time: its controllers, and the order of events."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import orjson

from compute_sim_planes.api_server.authz.authorizer import AllowEverything
from compute_sim_planes.api_server.authz.identity import Tokens, authenticated
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.http.watch_stream import WatchStream
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.plane import Plane, PlaneParts, UserTransport
from compute_sim_planes.api_server.state import Limits
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.api_server.testing import (
    MERGE_PATCH,
    START,
    ApiResponse,
    World,
    a_config_map,
    ask,
    in_virtual_time,
    metadata_of,
    uid_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at
from compute_sim_planes.time.clock import VirtualClock, run

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def watch(admin: UserTransport, query: str, path: str = MAPS) -> Response:
    return await admin.request("GET", f"{path}?watch=true&{query}", {}, None)


async def lines_of(answer: Response) -> list[JsonObject]:
    return [orjson.loads(line) async for line in answer.chunks()]


def test_a_watch_sends_a_bookmark_every_minute_and_one_before_its_end() -> None:
    async def scenario(world: World) -> list[tuple[float, str]]:
        began = world.clock.monotonic()
        answer = await watch(world.admin, "allowWatchBookmarks=true&timeoutSeconds=150")
        received: list[tuple[float, str]] = []
        async for line in answer.chunks():
            event: JsonObject = orjson.loads(line)
            since = (world.clock.monotonic() - began).total_seconds()
            received.append((since, string_at(event, "type")))
        received.append(((world.clock.monotonic() - began).total_seconds(), "end"))
        return received

    assert in_virtual_time(scenario) == [
        (60.0, "BOOKMARK"),
        (120.0, "BOOKMARK"),
        (148.0, "BOOKMARK"),
        (150.0, "end"),
    ]


def test_without_the_wish_for_bookmarks_there_are_none() -> None:
    async def scenario(world: World) -> list[JsonObject]:
        return await lines_of(await watch(world.admin, "timeoutSeconds=300"))

    assert in_virtual_time(scenario) == []


def test_a_bookmark_carries_the_version_of_the_plane() -> None:
    async def scenario(world: World) -> None:
        answer = await watch(world.admin, "allowWatchBookmarks=true&timeoutSeconds=65")
        (await ask(world.admin, "POST", "/api/v1/namespaces", a_namespace("other"))).expect(201)
        events = await lines_of(answer)
        assert version_of(object_at(events[0], "object")) == str(world.plane.state.store.revision)

    in_virtual_time(scenario)


def a_namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_a_watch_from_a_compacted_version_gets_an_error_event() -> None:
    async def scenario(world: World) -> None:
        listed = (await ask(world.admin, "GET", MAPS)).expect(200)
        (await ask(world.admin, "POST", MAPS, a_config_map())).expect(201)
        await world.clock.sleep(timedelta(minutes=6))
        (await ask(world.admin, "POST", MAPS, a_config_map("two"))).expect(201)
        (event,) = await lines_of(await watch(world.admin, f"resourceVersion={version_of(listed)}"))
        assert event["type"] == "ERROR"
        status = object_at(event, "object")
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert string_at(status, "message").startswith("too old resource version: ")

    in_virtual_time(scenario)


def test_a_watch_that_kept_up_outlives_compaction() -> None:
    async def scenario(world: World) -> list[JsonObject]:
        answer = await watch(world.admin, "resourceVersion=0&timeoutSeconds=1000")
        (await ask(world.admin, "POST", MAPS, a_config_map())).expect(201)
        world.plane.state.store.compact()
        (await ask(world.admin, "POST", MAPS, a_config_map("two"))).expect(201)
        return await lines_of(answer)

    events = in_virtual_time(scenario)
    names = [string_at(event, "object", "metadata", "name") for event in events]
    assert names == ["one", "two"]


def test_a_continue_token_expires_and_offers_another_that_goes_on_in_the_present() -> None:
    async def scenario(world: World) -> None:
        for name in "abc":
            (await ask(world.admin, "POST", MAPS, a_config_map(name))).expect(201)
        first = (await ask(world.admin, "GET", f"{MAPS}?limit=1")).expect(200)
        (await ask(world.admin, "DELETE", f"{MAPS}/b")).expect(200)
        world.plane.state.store.compact()
        token = string_at(first, "metadata", "continue")
        refused = await ask(world.admin, "GET", f"{MAPS}?limit=1&continue={token}")
        refused.expect(410)
        assert refused.reason == "Expired"
        assert refused.message.startswith("The provided continue parameter is too old ")
        fresh = string_at(refused.body, "metadata", "continue")
        rest = (await ask(world.admin, "GET", f"{MAPS}?limit=5&continue={fresh}")).expect(200)
        assert [metadata_of(item)["name"] for item in objects_at(rest, "items")] == ["c"]

    in_virtual_time(scenario)


def test_a_list_of_a_plane_at_rest_continues_at_the_version_of_its_last_write() -> None:
    async def scenario(world: World) -> list[str]:
        for name in "abc":
            (await ask(world.admin, "POST", MAPS, a_config_map(name))).expect(201)
        await world.clock.sleep(timedelta(minutes=6))
        names: list[str] = []
        token = ""
        while True:
            page = (await ask(world.admin, "GET", f"{MAPS}?limit=1&continue={token}")).expect(200)
            names += [string_at(item, "metadata", "name") for item in objects_at(page, "items")]
            token = string_at(page, "metadata", "continue")
            if not token:
                return names

    assert in_virtual_time(scenario) == ["a", "b", "c"]


def test_the_compacted_version_itself_is_readable() -> None:
    async def scenario(world: World) -> ApiResponse:
        made = (await ask(world.admin, "POST", MAPS, a_config_map())).expect(201)
        world.plane.state.store.compact()
        query = f"resourceVersion={version_of(made)}&resourceVersionMatch=Exact"
        return await ask(world.admin, "GET", f"{MAPS}?{query}")

    assert in_virtual_time(scenario).status == 200


def test_an_exact_version_that_was_compacted_is_expired() -> None:
    async def scenario(world: World) -> ApiResponse:
        made = (await ask(world.admin, "POST", MAPS, a_config_map())).expect(201)
        (await ask(world.admin, "POST", MAPS, a_config_map("two"))).expect(201)
        world.plane.state.store.compact()
        query = f"resourceVersion={version_of(made)}&resourceVersionMatch=Exact"
        return await ask(world.admin, "GET", f"{MAPS}?{query}")

    refused = in_virtual_time(scenario)
    assert (refused.status, refused.reason) == (410, "Expired")


def test_a_read_waits_three_seconds_for_a_version_and_then_gives_up() -> None:
    async def scenario(world: World) -> tuple[int, float]:
        began = world.clock.monotonic()
        reply = await ask(world.admin, "GET", f"{MAPS}?resourceVersion=100000")
        return reply.status, (world.clock.monotonic() - began).total_seconds()

    status, waited = in_virtual_time(scenario)
    assert status == 504
    assert 3.0 <= waited < 3.2


def test_a_read_gets_the_version_it_waited_for() -> None:
    async def scenario(world: World) -> list[str]:
        desired = world.plane.state.store.revision + 1
        reading = asyncio.create_task(ask(world.admin, "GET", f"{MAPS}?resourceVersion={desired}"))
        await world.clock.sleep(timedelta(seconds=1))
        (await ask(world.admin, "POST", MAPS, a_config_map())).expect(201)
        listed = (await reading).expect(200)
        return [string_at(item, "metadata", "name") for item in objects_at(listed, "items")]

    assert in_virtual_time(scenario) == ["one"]


def test_controllers_take_a_moment_to_notice() -> None:
    async def scenario(world: World) -> None:
        owner = (await ask(world.admin, "POST", MAPS, a_config_map("owner"))).expect(201)
        reference: JsonValue = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid_of(owner)}
        ]
        child = a_config_map("child", ownerReferences=reference)
        (await ask(world.admin, "POST", MAPS, child)).expect(201)
        (await ask(world.admin, "DELETE", f"{MAPS}/owner")).expect(200)
        (await ask(world.admin, "GET", f"{MAPS}/child")).expect(200)
        await world.clock.sleep(timedelta(seconds=2))
        (await ask(world.admin, "GET", f"{MAPS}/child")).expect(404)

    in_virtual_time(
        scenario, parts=PlaneParts(limits=Limits(controller_delay=timedelta(seconds=1)))
    )


def test_a_dependent_of_an_unknown_kind_stays() -> None:
    """Whether its owner exists is unknown; a real collector keeps trying and deletes nothing."""

    async def scenario(world: World) -> int:
        reference: JsonValue = [
            {"apiVersion": "nobody.example.com/v1", "kind": "Ghost", "name": "g", "uid": "u"}
        ]
        desired = a_config_map("child", ownerReferences=reference)
        (await ask(world.admin, "POST", MAPS, desired)).expect(201)
        await world.clock.sleep(timedelta(minutes=10))
        return (await ask(world.admin, "GET", f"{MAPS}/child")).status

    assert in_virtual_time(scenario) == 200


def test_closing_a_plane_ends_its_watches_and_leaves_no_timer() -> None:
    async def main(clock: VirtualClock) -> list[JsonObject]:
        plane = Plane("plane", PlaneParts(clock=clock, identities=clock.identities))
        answer = await watch(plane.connect(), "allowWatchBookmarks=true")
        reading = asyncio.create_task(lines_of(answer))
        await clock.sleep(timedelta(seconds=1))
        await plane.close()
        return await reading

    assert run(main, seed=1, start=START) == []


def test_a_closed_watch_is_no_longer_told() -> None:
    async def scenario(world: World) -> None:
        answer = await watch(world.admin, "resourceVersion=0")
        (await ask(world.admin, "POST", MAPS, a_config_map())).expect(201)
        await answer.close()
        await answer.close()
        assert await lines_of(answer) == []
        assert world.plane.state.streams == {}

    in_virtual_time(scenario)


def test_lines_can_be_read_in_batches() -> None:
    async def scenario(world: World) -> list[int]:
        for name in "abc":
            (await ask(world.admin, "POST", MAPS, a_config_map(name))).expect(201)
        answer = await watch(world.admin, "timeoutSeconds=1")
        assert isinstance(answer, WatchStream)
        return [batch.count(b"\n") async for batch in answer.batches()]

    assert in_virtual_time(scenario) == [3]


def a_crowd(seed: int) -> list[str]:
    """The events of a watch while several writers change the same objects."""

    async def scenario(world: World) -> list[str]:
        answer = await watch(world.admin, "resourceVersion=0&timeoutSeconds=100")

        async def write(writer: int) -> None:
            for turn in range(5):
                await world.clock.sleep(timedelta(seconds=1))
                name = f"map-{turn}"
                reply = await ask(
                    world.admin, "POST", MAPS, a_config_map(name, {"by": str(writer)})
                )
                if reply.status == 409:
                    patch: JsonObject = {"data": {"by": str(writer)}}
                    await ask(world.admin, "PATCH", f"{MAPS}/{name}", patch, MERGE_PATCH)

        async with asyncio.TaskGroup() as group:
            for writer in range(3):
                group.create_task(write(writer))
        return [line.decode() async for line in answer.chunks()]

    return in_virtual_time(scenario, seed=seed)


def test_a_run_is_a_function_of_its_seed() -> None:
    assert a_crowd(1) == a_crowd(1)
    assert a_crowd(1) != a_crowd(2)


def test_planes_may_share_definitions_and_versions_but_no_objects() -> None:
    """As for Milo's projects: one server with the root's CRDs, everything else separate."""

    async def main(clock: VirtualClock) -> None:
        revisions = Revisions()
        common = {"clock": clock, "identities": clock.identities, "revisions": revisions}
        root = Plane("root", PlaneParts(**common))  # type: ignore[arg-type]  # the same three parts
        one, other = (
            Plane(
                name,
                PlaneParts(
                    **common,  # type: ignore[arg-type]  # the same three parts
                    definitions=root.definitions,
                    authorizer=root.state.authorizer,
                    namespaces=("default", "milo-system"),
                ),
            )
            for name in ("one", "other")
        )
        (await ask(root.connect(), "POST", CRDS, a_definition())).expect(201)
        await clock.sleep(timedelta(seconds=1))
        path = "/apis/example.com/v1/namespaces/default/notes"
        made = (await ask(one.connect(), "POST", path, a_note())).expect(201)
        again = (await ask(other.connect(), "POST", path, a_note())).expect(201)
        assert int(version_of(again)) == int(version_of(made)) + 1
        assert uid_of(made) != uid_of(again)
        namespaces = [
            uid_of((await ask(plane.connect(), "GET", "/api/v1/namespaces/default")).expect(200))
            for plane in (root, one, other)
        ]
        assert len(set(namespaces)) == 3
        # The root's roles apply.
        eve = authenticated("eve", "system:masters-of-nothing")
        assert (await ask(one.connect(eve), "GET", path)).status == 403
        (await ask(root.connect(), "DELETE", f"{CRDS}/notes.example.com")).expect(200)
        await clock.sleep(timedelta(seconds=1))
        for plane in (root, one, other):
            assert (await ask(plane.connect(), "GET", path)).status == 404
            await plane.close()

    run(main, seed=1, start=START)


def a_definition() -> JsonObject:
    schema: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "notes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "notes", "kind": "Note"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def a_note(name: str = "one") -> JsonObject:
    return {"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": name}}


def test_a_watch_from_before_a_change_of_the_kind_begins_anew() -> None:
    """A real server rebuilds its watch cache when a definition changes, without history."""

    async def scenario(world: World) -> None:
        (await ask(world.admin, "POST", CRDS, a_definition())).expect(201)
        await world.clock.sleep(timedelta(seconds=1))
        path = "/apis/example.com/v1/namespaces/default/notes"
        made = (await ask(world.admin, "POST", path, a_note())).expect(201)
        open_watch = await watch(world.admin, f"resourceVersion={version_of(made)}", path)
        patch: JsonObject = {"spec": {"names": {"shortNames": ["nt"]}}}
        target = f"{CRDS}/notes.example.com"
        (await ask(world.admin, "PATCH", target, patch, MERGE_PATCH)).expect(200)
        await world.clock.sleep(timedelta(seconds=1))
        assert await lines_of(open_watch) == []
        (event,) = await lines_of(
            await watch(world.admin, f"resourceVersion={version_of(made)}", path)
        )
        assert object_at(event, "object")["code"] == 410

    in_virtual_time(scenario)


def test_a_token_can_be_withdrawn_and_renewed_while_the_plane_runs() -> None:
    async def main(clock: VirtualClock) -> list[int]:
        tokens = Tokens({"old": authenticated("robot")})
        parts = PlaneParts(clock=clock, tokens=tokens, authorizer=AllowEverything())
        plane = Plane("plane", parts)

        async def status(token: str) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            return (await plane.request("GET", MAPS, headers, None)).status

        statuses = [await status("old")]
        tokens.users = {"new": authenticated("robot")}
        statuses += [await status("old"), await status("new")]
        await plane.close()
        return statuses

    assert run(main, seed=1, start=START) == [200, 401, 200]


def test_the_size_of_an_object_is_limited() -> None:
    async def scenario(world: World) -> ApiResponse:
        return await ask(world.admin, "POST", MAPS, a_config_map(data={"a": "x" * 2000}))

    refused = in_virtual_time(scenario, parts=PlaneParts(limits=Limits(object_bytes=1000)))
    assert (refused.status, refused.reason) == (413, "RequestEntityTooLarge")


def test_a_namespace_that_ends_takes_many_objects_along_in_one_story() -> None:
    async def scenario(world: World) -> list[str]:
        (await ask(world.admin, "POST", "/api/v1/namespaces", a_namespace("team"))).expect(201)
        path = MAPS.replace("default", "team")
        for number in range(50):
            (await ask(world.admin, "POST", path, a_config_map(f"m{number}"))).expect(201)
        answer = await watch(
            world.admin, "resourceVersion=0&timeoutSeconds=60", "/api/v1/namespaces"
        )
        (await ask(world.admin, "DELETE", "/api/v1/namespaces/team")).expect(200)
        events = await lines_of(answer)
        assert len(world.plane.state.store.bucket(plane_maps()).changes_after(0)) >= 100
        return [
            f"{event['type']} {string_at(event, 'object', 'status', 'phase')}"
            for event in events
            if string_at(event, "object", "metadata", "name") == "team"
        ]

    assert in_virtual_time(scenario) == [
        "ADDED Active",
        "MODIFIED Terminating",
        "DELETED Terminating",
    ]


def plane_maps() -> GroupResource:
    return GroupResource("", "configmaps")
