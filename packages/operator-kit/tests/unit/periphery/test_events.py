from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from typing_extensions import override

from compute_operator_kit.client.interface import AlreadyExists
from compute_operator_kit.core.errors import (
    ForbiddenError,
    ReconcileError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)
from compute_operator_kit.core.json import Json, JsonMapping, decode_json_object, encode
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Snapshot, parse_object
from compute_operator_kit.intents.intents import RecordEvent
from compute_operator_kit.telemetry.events import (
    AT_ONCE,
    BURST,
    CLOSED_FOR,
    EVENT,
    GIVES_WAY_FOR,
    LOOKS_EVERY,
    QUEUE_LIMIT,
    TRIES,
    EventSink,
    EventSource,
    derive_event_name,
    sanitise_message,
)
from compute_operator_kit.testing.fakes import FakeClock

WORKLOAD = Kind("compute.datumapis.com", "v1alpha", "workloads", "Workload")
CLUSTER = Kind("cluster.karmada.io", "v1alpha1", "clusters", "Cluster", namespaced=False)
PLANE = PlaneName("p1")
REPORTER = EventSource("compute-management-operator", "pod-1")


class FakeEvents:
    """Events of one plane, in memory."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Json]] = {}
        self.writes: list[str] = []
        self.next_error: ReconcileError | None = None
        self.hang = asyncio.Event()
        self.hang.set()
        self.asked = 0

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists:
        await self._admit("create")
        if key.name in self.stored:
            return AlreadyExists()
        return self._store(key, decode_json_object(encode(body)))

    async def patch_merge(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        await self._admit("patch")
        if key.name not in self.stored:
            return Absent()
        return self._store(key, self.stored[key.name] | decode_json_object(encode(body)))

    async def _admit(self, verb: str) -> None:
        self.asked += 1
        await self.hang.wait()
        error, self.next_error = self.next_error, None
        if error is not None:
            raise error
        self.writes.append(verb)

    def _store(self, key: ObjectKey, body: dict[str, Json]) -> Snapshot:
        assert key.kind == EVENT
        self.stored[key.name] = body
        return parse_object(key.plane, EVENT, decode_json_object(encode(body)), None).snapshot

    @property
    def only(self) -> dict[str, Json]:
        (event,) = self.stored.values()
        return event


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.planes: dict[PlaneName, FakeEvents] = {PLANE: FakeEvents()}
        self.is_pressed = False
        self.recorder = EventSink(self.planes.get, REPORTER, self.clock, lambda: self.is_pressed)

    @property
    def events(self) -> FakeEvents:
        return self.planes[PLANE]

    async def record(self, *emits: RecordEvent) -> None:
        for emit in emits:
            self.recorder.record(emit)
            await self.recorder.drain()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    running = asyncio.create_task(world.recorder.run())
    yield world
    running.cancel()
    await asyncio.wait({running})


@pytest.mark.spec("FS-06")
@pytest.mark.parametrize("reason", ["NamespaceTerminating", "NamespaceAbsent"])
async def test_a_namespace_that_goes_is_not_asked_again_for_a_minute(
    world: World, reason: str
) -> None:
    world.events.next_error = RejectedError(reason, "creating Event: refused")
    await world.record(an_emit("api"), an_emit("db"), an_emit("web"))
    assert (world.events.asked, world.recorder.dropped) == (1, 3)
    elsewhere = an_emit("web")
    elsewhere = replace(elsewhere, key=replace(elsewhere.key, namespace="other"))
    await world.record(elsewhere)
    assert world.events.writes == ["create"]
    world.clock.pass_time(CLOSED_FOR)
    await world.record(an_emit("web"))
    assert world.events.writes == ["create", "create"]


def an_emit(
    name: str = "web",
    *,
    plane: PlaneName = PLANE,
    uid: str = "u-1",
    reason: str = "NetworkNotFound",
    message: str = "Network 'default' does not exist",
) -> RecordEvent:
    return RecordEvent(
        ObjectKey(plane, WORKLOAD, "team-a", name),
        Uid(uid),
        reason,
        message,
        "Reconcile",
        "Warning",
    )


async def test_an_event_says_what_happened_to_which_object_and_who_says_so(world: World) -> None:
    await world.record(an_emit())

    event = world.events.only
    metadata = event.pop("metadata")
    assert isinstance(metadata, dict)
    assert metadata["namespace"] == "team-a"
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "compute.datumapis.com/v1alpha",
            "kind": "Workload",
            "namespace": "team-a",
            "name": "web",
            "uid": "u-1",
        },
        "type": "Warning",
        "reason": "NetworkNotFound",
        "action": "Reconcile",
        "message": "Network 'default' does not exist",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "reportingComponent": "compute-management-operator",
        "reportingInstance": "pod-1",
        "source": {"component": "compute-management-operator"},
    }


async def test_a_repetition_counts_on_the_same_event(world: World) -> None:
    await world.record(an_emit())
    world.clock.pass_time(timedelta(minutes=3))
    await world.record(an_emit(message="Network 'other' does not exist"))

    event = world.events.only
    assert event["count"] == 2
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:03:00Z"
    assert event["message"] == "Network 'other' does not exist"
    assert world.events.writes == ["create", "patch"]


@pytest.mark.parametrize(("minutes", "events"), [(10, 1), (11, 2)])
async def test_what_happens_again_after_ten_minutes_is_news(
    world: World, minutes: int, events: int
) -> None:
    await world.record(an_emit())
    world.clock.pass_time(timedelta(minutes=minutes))
    await world.record(an_emit())

    assert len(world.events.stored) == events


@pytest.mark.parametrize(
    "other",
    [
        an_emit(uid="u-2"),
        an_emit("api"),
        an_emit(reason="NameCollision"),
        replace(an_emit(), type="Normal"),
    ],
)
async def test_another_object_reason_or_type_is_another_event(
    world: World, other: RecordEvent
) -> None:
    await world.record(an_emit(), other)

    assert len(world.events.stored) == 2
    assert world.events.writes == ["create", "create"]


async def test_an_event_that_the_server_forgot_is_written_anew(world: World) -> None:
    await world.record(an_emit())
    world.events.stored.clear()
    world.clock.pass_time(timedelta(minutes=5))

    await world.record(an_emit())

    assert world.events.only["count"] == 1
    assert world.events.only["firstTimestamp"] == "2026-01-01T00:05:00Z"


async def test_after_an_hour_a_repetition_is_an_event_of_its_own(world: World) -> None:
    await world.record(an_emit())
    world.clock.pass_time(timedelta(hours=1))
    await world.record(an_emit())

    assert len(world.events.stored) == 2


async def test_a_clock_that_steps_back_does_not_make_an_event_older(world: World) -> None:
    await world.record(an_emit())
    world.clock.step = -timedelta(hours=1)
    await world.record(an_emit())

    assert world.events.only["lastTimestamp"] == "2026-01-01T00:00:00Z"


async def test_a_storm_on_one_object_is_cut_and_its_count_is_not_lost(world: World) -> None:
    for _ in range(100):
        await world.record(an_emit())
    assert len(world.events.writes) == BURST
    assert world.recorder.dropped == 100 - BURST

    world.clock.pass_time(timedelta(minutes=5))
    await world.record(an_emit())

    assert world.events.only["count"] == 101


async def test_a_storm_on_one_object_does_not_silence_another(world: World) -> None:
    for _ in range(100):
        await world.record(an_emit())

    await world.record(an_emit("api"))

    assert len(world.events.stored) == 2


@pytest.mark.parametrize(
    "error", [ForbiddenError("Forbidden", "no"), UnavailableError("PlaneAway", "away")]
)
async def test_an_event_that_cannot_be_written_hurts_nobody(
    world: World, error: ReconcileError
) -> None:
    world.events.next_error = error
    await world.record(an_emit())
    assert world.recorder.dropped == 1

    await world.record(an_emit())

    assert len(world.events.stored) == 1


async def test_a_server_that_asks_to_come_again_is_obeyed(world: World) -> None:
    pause = timedelta(seconds=2)
    world.events.next_error = ThrottledError("TooManyRequests", "later", retry_after=pause)
    world.recorder.record(an_emit())
    for _ in range(5):
        await asyncio.sleep(0)
    assert world.events.stored == {}
    world.clock.pass_time(pause)
    await world.recorder.drain()
    assert world.events.only["count"] == 1
    assert world.recorder.dropped == 0


async def test_a_server_that_asks_for_ever_is_left_alone(world: World) -> None:
    class Busy(FakeEvents):
        @override
        async def _admit(self, verb: str) -> None:
            self.writes.append(verb)
            raise ThrottledError("TooManyRequests", "later", retry_after=timedelta())

    world.planes[PLANE] = Busy()
    await world.record(an_emit())
    assert world.recorder.dropped == 1
    assert world.events.writes == ["create"] * TRIES


async def test_events_of_a_plane_that_is_gone_are_dropped(world: World) -> None:
    await world.record(an_emit(plane=PlaneName("gone")))

    assert world.recorder.dropped == 1


async def test_a_plane_that_hangs_does_not_hold_up_another(world: World) -> None:
    slow = world.planes[PlaneName("slow")] = FakeEvents()
    slow.hang.clear()
    world.recorder.record(an_emit(plane=PlaneName("slow")))
    world.recorder.record(an_emit())

    for _ in range(10):
        await asyncio.sleep(0)

    assert world.events.only["count"] == 1
    slow.hang.set()
    await world.recorder.drain()
    assert slow.only["count"] == 1


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_events_wait_while_all_workers_are_busy_and_tell_when_it_happened(
    world: World,
) -> None:
    world.is_pressed = True
    happened = world.clock.now()
    world.recorder.record(an_emit())
    await settle()
    world.clock.pass_time(LOOKS_EVERY)
    await settle()
    assert world.events.stored == {}

    world.is_pressed = False
    world.clock.pass_time(LOOKS_EVERY)
    await world.recorder.drain()

    assert world.events.only["firstTimestamp"] == happened.strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_events_wait_no_longer_than_people_would(world: World) -> None:
    world.is_pressed = True
    world.recorder.record(an_emit())
    await settle()
    while world.events.stored == {}:
        world.clock.pass_time(LOOKS_EVERY)
        await settle()
        assert world.clock.monotonic() <= GIVES_WAY_FOR + LOOKS_EVERY

    assert world.clock.monotonic() >= GIVES_WAY_FOR


async def test_events_wait_for_nobody_where_they_would_be_lost(world: World) -> None:
    world.is_pressed = True
    for number in range(QUEUE_LIMIT // 2 + 1):
        world.recorder.record(an_emit(f"w-{number}"))
    await world.recorder.drain()

    assert world.recorder.dropped == 0
    assert len(world.events.stored) == QUEUE_LIMIT // 2 + 1


async def test_no_more_planes_are_told_at_once_than_connections_are_worth(world: World) -> None:
    planes = [PlaneName(f"p-{number}") for number in range(2 * AT_ONCE)]
    for plane in planes:
        world.planes[plane] = FakeEvents()
        world.planes[plane].hang.clear()
        world.recorder.record(an_emit(plane=plane))
    await settle()
    assert sum(world.planes[plane].asked for plane in planes) == AT_ONCE

    for plane in planes:
        world.planes[plane].hang.set()
    await world.recorder.drain()
    assert all(world.planes[plane].only["count"] == 1 for plane in planes)


async def test_what_a_hanging_plane_has_not_taken_is_bounded(world: World) -> None:
    world.events.hang.clear()

    for number in range(2 * QUEUE_LIMIT):
        world.recorder.record(an_emit(f"w-{number}"))

    assert world.recorder.dropped == QUEUE_LIMIT
    world.events.hang.set()
    await world.recorder.drain()


async def test_a_lost_answer_makes_no_second_event(world: World) -> None:
    await world.record(an_emit())
    twin = EventSink(world.planes.get, REPORTER, world.clock)
    running = asyncio.create_task(twin.run())

    twin.record(an_emit())
    await twin.drain()

    assert len(world.events.stored) == 1
    running.cancel()
    await asyncio.wait({running})


async def test_an_object_without_a_namespace_has_its_events_in_default(world: World) -> None:
    key = ObjectKey(PLANE, CLUSTER, "", "dfw-1")
    related = ObjectKey(PLANE, WORKLOAD, "team-a", "web")
    await world.record(
        RecordEvent(key, Uid("u"), "AmbiguousCity", "m", "", related=related, related_uid=Uid("r"))
    )

    event = world.events.only
    assert event["action"] == "AmbiguousCity"
    assert event["involvedObject"] == {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "name": "dfw-1",
        "uid": "u",
    }
    assert event["related"] == {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Workload",
        "namespace": "team-a",
        "name": "web",
        "uid": "r",
    }


@pytest.mark.spec("S15")
@given(st.text(max_size=3000))
def test_a_message_is_one_printable_line_of_at_most_1024_bytes(text: str) -> None:
    message = sanitise_message(text)

    assert message.isprintable()
    assert len(message.encode()) <= 1024


@pytest.mark.spec("C-84")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1021 + "..."),
        ("é" * 512, "é" * 512),
        ("é" * 513, "é" * 510 + "..."),  # 1021 bytes hold 510 of them, and never half of one
        ("\n" * 600, "\\n" * 510 + "\\..."),
    ],
)
def test_a_message_that_was_cut_says_so(text: str, wanted: str) -> None:
    assert sanitise_message(text) == wanted


def test_a_message_is_data_and_never_a_format() -> None:
    assert sanitise_message("%s {0} {about.key}") == "%s {0} {about.key}"


@given(st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True))
def test_an_event_name_is_a_legal_name_whatever_the_object_is_called(name: str) -> None:
    found = derive_event_name(an_emit(name), REPORTER, datetime(2026, 1, 1, tzinfo=UTC))

    assert len(found) <= 253
    assert found[-17] == "."
    assert found[-18].isalnum()
