from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from compute_sim_planes.api_server.http.transport import read_body
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.history import Commit, Event, History, RecordingTransport, Request
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.oracles.canonical_state import canonical_state
from compute_sim_planes.request_address import Address, parse_address
from compute_sim_planes.time.clock import VirtualClock, run

START = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
CONFIG = Resource("", "v1", "configmaps", "ConfigMap")


def a_config(name: str = "a", **data: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {**data}}


class World:
    """A plane, a client and their history."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.plane = Plane("hub", PlaneParts(clock=clock, identities=clock))
        self.history = History(clock)
        self.history.listen("hub", self.plane.state.store)
        self.transport = RecordingTransport(
            self.plane.connect(), self.history, plane="hub", identity="us", kinds=self.kind_name
        )
        self.client = Client(self.transport, manager="agent/1")

    def kind_name(self, group: str, version: str, resource: str) -> str:
        kind = self.plane.state.catalog.find(group, version, resource)
        return kind.kind if kind is not None else ""


async def write_and_delete(clock: VirtualClock) -> History:
    world = World(clock)
    made = await world.client.create(CONFIG, a_config(k="v"))
    made["data"] = {"k": "w"}
    await clock.sleep(timedelta(seconds=1))
    await world.client.update(CONFIG, made)
    assert await world.client.get(CONFIG, "absent", "default") is None
    await world.client.delete(CONFIG, "a", namespace="default")
    await world.plane.close()
    return world.history


def test_requests_are_recorded_with_caller_address_and_outcome() -> None:
    history = run(write_and_delete, seed=1, start=START)

    recorded = [
        (
            r.caller.identity,
            r.caller.user_agent,
            r.address.verb,
            r.address.kind,
            r.address.key,
            r.status,
        )
        for r in history.of(Request)
    ]
    assert recorded == [
        ("us", "agent/1", "create", "ConfigMap", "default/a", 201),
        ("us", "agent/1", "update", "ConfigMap", "default/a", 200),
        ("us", "agent/1", "get", "ConfigMap", "default/absent", 404),
        ("us", "agent/1", "delete", "ConfigMap", "default/a", 200),
    ]


def test_a_write_carries_the_bytes_before_and_after_it() -> None:
    history = run(write_and_delete, seed=1, start=START)
    create, update, _, delete = (request.commits for request in history.of(Request))

    assert create[0].before == b""
    assert json.loads(create[0].after)["data"] == {"k": "v"}
    assert update[0].before == create[0].after
    assert json.loads(update[0].after)["data"] == {"k": "w"}
    assert delete[0].before == update[0].after
    assert delete[0].after == b""


def test_what_the_plane_does_by_itself_belongs_to_no_request() -> None:
    async def main(clock: VirtualClock) -> History:
        world = World(clock)
        owner = await world.client.create(CONFIG, a_config("owner"))
        uid = owner["metadata"]["uid"] if isinstance(owner["metadata"], dict) else ""
        child = a_config("child")
        child["metadata"] = {
            "name": "child",
            "namespace": "default",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
            ],
        }
        await world.client.create(CONFIG, child)
        await world.client.delete(CONFIG, "owner", namespace="default")
        await clock.sleep(timedelta(seconds=5))
        await world.plane.close()
        return world.history

    commits = list(run(main, seed=1, start=START).of(Commit))

    (collected,) = [commit for commit in commits if commit.request is None]
    assert (collected.type, collected.key) == ("DELETED", "default/child")


def test_watch_events_are_recorded_as_they_reach_their_watcher() -> None:
    async def main(clock: VirtualClock) -> History:
        world = World(clock)
        answer = await world.transport.request(
            "GET", "/api/v1/configmaps?watch=true&resourceVersion=0", {}, None
        )
        await world.client.create(CONFIG, a_config(k="v"))
        chunks = answer.chunks()
        await anext(chunks)
        assert next(iter(world.history.open_responses.values())).verb == "watch"
        await answer.close()
        assert not world.history.open_responses
        await world.plane.close()
        return world.history

    (event,) = run(main, seed=1, start=START).of(Event)

    assert (event.plane, event.type, event.kind, event.key) == (
        "hub", "ADDED", "ConfigMap", "default/a",
    )  # fmt: skip


def test_a_request_that_fails_on_its_way_is_recorded_with_its_failure() -> None:
    class Broken:
        async def request(self, *_: object) -> None:
            raise ConnectionResetError("gone")

    async def main(clock: VirtualClock) -> Request:
        history = History(clock)
        transport = RecordingTransport(Broken(), history, plane="p", identity="i")  # type: ignore[arg-type]  # answers with nothing on purpose
        with pytest.raises(ConnectionResetError):
            await transport.request("GET", "/api/v1/configmaps", {}, None)
        (request,) = history.of(Request)
        return request

    request = run(main, seed=1, start=START)

    assert (request.status, request.failure, request.is_refused) == (
        0,
        "ConnectionResetError",
        True,
    )


def test_the_same_seed_gives_the_same_history_byte_for_byte() -> None:
    first = run(write_and_delete, seed=5, start=START).dump()
    second = run(write_and_delete, seed=5, start=START).dump()
    other = run(write_and_delete, seed=6, start=START).dump()

    assert first == second
    assert first != other
    assert [json.loads(line)["entry"] for line in first.splitlines()] == [
        "Commit", "Request", "Commit", "Request", "Request", "Commit", "Request",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "target", "body", "expected"),
    [
        ("GET", "/api/v1/namespaces", None, Address("p", "list", "", "namespaces")),
        (
            "GET",
            "/api/v1/namespaces/a",
            None,
            Address("p", "get", "", "namespaces", name="a"),
        ),
        (
            "GET",
            "/apis/g.io/v1/namespaces/n/things?watch=1",
            None,
            Address("p", "watch", "g.io", "things", namespace="n"),
        ),
        (
            "POST",
            "/apis/g.io/v1/namespaces/n/things?dryRun=All",
            b'{"metadata":{"name":"x"}}',
            Address("p", "create", "g.io", "things", namespace="n", name="x", is_dry_run=True),
        ),
        (
            "PUT",
            "/apis/g.io/v1/namespaces/n/things/x/status",
            b"",
            Address("p", "update", "g.io", "things", namespace="n", name="x", subresource="status"),
        ),
        (
            "DELETE",
            "/apis/g.io/v1/things",
            None,
            Address("p", "deletecollection", "g.io", "things"),
        ),
        ("POST", "/apis/g.io/v1/things", b"junk", Address("p", "create", "g.io", "things")),
        ("GET", "/healthz", None, Address("p", "get", resource="/healthz")),
    ],
)
def test_an_address_is_read_from_the_request(
    method: str, target: str, body: bytes | None, expected: Address
) -> None:
    assert parse_address("p", method, target, body) == expected


def test_questions_and_rehearsals_are_no_writes() -> None:
    review = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

    assert parse_address("p", "POST", "/api/v1/namespaces", b"{}").is_write
    assert not parse_address("p", "POST", "/api/v1/namespaces?dryRun=All", b"{}").is_write
    assert not parse_address("p", "POST", review, b"{}").is_write
    assert not parse_address("p", "GET", "/api/v1/namespaces", None).is_write


def test_worlds_are_equal_when_only_identity_and_times_differ() -> None:
    def a_world(uid: str, time: str, *, status: str = "True") -> bytes:
        document: JsonObject = {
            "kind": "Thing",
            "metadata": {"name": "a", "uid": uid, "resourceVersion": uid, "finalizers": ["b", "a"]},
            "status": {
                "conditions": [
                    {"type": "Ready", "status": status, "lastTransitionTime": time},
                    {"type": "Available", "status": "True", "lastTransitionTime": time},
                ]
            },
        }
        return canonical_state({"hub": [document]})

    swapped: JsonObject = {
        "kind": "Thing",
        "metadata": {"name": "a", "finalizers": ["a", "b"]},
        "status": {
            "conditions": [
                {"type": "Available", "status": "True"},
                {"type": "Ready", "status": "True"},
            ]
        },
    }

    assert a_world("1", "t1") == a_world("2", "t2") == canonical_state({"hub": [swapped]})
    assert a_world("1", "t1") != a_world("1", "t1", status="False")
    assert canonical_state({"hub": [swapped]}) != canonical_state({"cell": [swapped]})


async def test_reading_an_answer_closes_it() -> None:
    class Clock:
        def now(self) -> datetime:
            return START

    history = History(Clock())
    plane = Plane("p")
    transport = RecordingTransport(plane.connect(), history, plane="p", identity="i")
    answer = await transport.request("GET", "/api/v1/namespaces", {}, None)
    assert history.open_responses
    await read_body(answer)
    await plane.close()

    assert not history.open_responses
