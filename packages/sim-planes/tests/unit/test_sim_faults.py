from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest

from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.storage.records import Change
from compute_sim_planes.client.errors import (
    ApiError,
    ConflictError,
    ExpiredError,
    ThrottledError,
    WatchEndedError,
)
from compute_sim_planes.client.rest import Client, Resource, WatchEvent
from compute_sim_planes.faults.injection import CrashableProcess, FaultyTransport, Injector
from compute_sim_planes.faults.links import Link, LinkState
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point, default_fault
from compute_sim_planes.history import Commit, History, Injected, RecordingTransport
from compute_sim_planes.json_types import JsonObject, object_at, string_at
from compute_sim_planes.time.clock import VirtualClock, run

START = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
CONFIG = Resource("", "v1", "configmaps", "ConfigMap")
SECRET = Resource("", "v1", "secrets", "Secret")
SECOND = timedelta(seconds=1)
HANGS = timedelta(hours=1)


def a_config(name: str = "a", **data: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {**data}}


class World:
    """A plane, a direct client, and a client with faults."""

    def __init__(self, clock: VirtualClock, faults: tuple[Fault, ...]) -> None:
        self.clock = clock
        self.plane = Plane("hub", PlaneParts(clock=clock, identities=clock))
        self.history = History(clock)
        self.life = CrashableProcess("operator")
        self.link = Link()
        self.injector = Injector(faults, clock, self.history)
        self.transport = FaultyTransport(
            self.plane.connect(),
            self.injector,
            plane="hub",
            kinds=self.kind_name,
            process=self.life,
            link=self.link,
        )
        self.client = Client(self.transport, manager="operator")
        self.honest = Client(self.plane.connect(), manager="somebody")

    def kind_name(self, group: str, version: str, resource: str) -> str:
        kind = self.plane.state.catalog.find(group, version, resource)
        return kind.kind if kind is not None else ""

    async def exists(self, name: str = "a") -> bool:
        return await self.honest.get(CONFIG, name, "default") is not None

    async def watching(self, resource: Resource = CONFIG) -> Watching:
        listing = await self.honest.list(resource)
        return Watching(self, resource, listing.version)


class Watching:
    """A watch with faults, read by a task."""

    def __init__(self, world: World, resource: Resource, version: str) -> None:
        self.received: list[str] = []
        self.error: Exception | None = None
        self.has_ended = False
        self._events = world.client.watch(resource, version)
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async with aclosing(self._events) as events:
                async for event in events:
                    self.received.append(render_event(event))
        except (ApiError, WatchEndedError, OSError) as error:
            self.error = error
        self.has_ended = True

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


def render_event(event: WatchEvent) -> str:
    value = string_at(event.object, "data", "k")
    return f"{event.type[0]}{string_at(event.object, 'metadata', 'name')}{value}"


Body = Callable[[World], Awaitable[None]]


def in_world(body: Body, *faults: Fault) -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, faults)
        try:
            await body(world)
        finally:
            await world.plane.close()

    run(main, seed=1, start=START)


def a_fault(action: Action, at: Point, **parameters: object) -> Fault:
    return Fault("X1", action, at, Parameters(**parameters))  # type: ignore[arg-type]  # a test's shorthand


CREATE = Point("hub", "create", "ConfigMap", "default/a")


@pytest.mark.parametrize(
    ("fault_id", "error", "status"),
    [
        ("C1", ConflictError, 409),
        ("C3", ThrottledError, 429),
        ("C4", ApiError, 503),
        ("C6", ApiError, 403),
        ("C8", ApiError, 500),
    ],
)
def test_an_error_status_answers_without_touching_the_plane(
    fault_id: str, error: type[ApiError], status: int
) -> None:
    async def body(world: World) -> None:
        with pytest.raises(error) as caught:
            await world.client.create(CONFIG, a_config())
        assert caught.value.status == status
        assert not await world.exists()
        await world.client.create(CONFIG, a_config())
        assert await world.exists()

    in_world(body, default_fault(fault_id, CREATE))


def test_a_throttled_response_has_retry_after() -> None:
    async def body(world: World) -> None:
        answer = await world.transport.request("GET", "/api/v1/configmaps", {}, None)
        assert (answer.status, answer.headers["Retry-After"]) == (429, "5")

    in_world(body, default_fault("C3", Point("hub", "list")))


@pytest.mark.parametrize(
    ("action", "error", "is_committed"),
    [
        (Action.REFUSE, ConnectionRefusedError, False),
        (Action.RESET, ConnectionResetError, False),
        (Action.LOSE_REPLY, ConnectionResetError, True),
    ],
)
def test_a_broken_connection_does_not_reveal_whether_it_was_committed(
    action: Action, error: type[OSError], is_committed: bool
) -> None:
    async def body(world: World) -> None:
        with pytest.raises(error):
            await world.client.create(CONFIG, a_config())
        assert await world.exists() is is_committed

    in_world(body, a_fault(action, CREATE))


@pytest.mark.parametrize(
    ("action", "is_committed"), [(Action.TIMEOUT, False), (Action.TIMEOUT_COMMITTED, True)]
)
@pytest.mark.fault("C5")
def test_a_request_that_hangs_may_have_been_committed(action: Action, is_committed: bool) -> None:
    async def body(world: World) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(HANGS.total_seconds()):
                await world.client.create(CONFIG, a_config())
        assert world.clock.monotonic() == HANGS
        assert await world.exists() is is_committed

    in_world(body, a_fault(action, CREATE))


def test_what_follows_a_commit_without_an_answer_is_not_of_its_request() -> None:
    async def main(clock: VirtualClock) -> list[int | None]:
        world = World(clock, (default_fault("C5", Point(verb="create")),))
        world.history.listen("hub", world.plane.state.store)
        recording = RecordingTransport(
            world.transport, world.history, plane="hub", identity="operator"
        )

        async def follow() -> None:
            await asyncio.sleep(1)
            await world.honest.create(CONFIG, a_config("b"))

        followers: list[asyncio.Task[None]] = []

        def note(change: Change) -> None:
            if change.after.name == "a":
                followers.append(asyncio.create_task(follow()))

        world.plane.state.store.listen(note)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await Client(recording, manager="operator").create(CONFIG, a_config("a"))
        await asyncio.wait(followers)
        kept = [one for one in world.history.of(Commit) if one.kind == "ConfigMap"]
        return [one.request for one in kept]

    assert run(main, seed=1, start=START) == [1, None]


def test_a_delay_takes_its_time() -> None:
    async def body(world: World) -> None:
        await world.client.create(CONFIG, a_config())
        assert world.clock.monotonic() == timedelta(seconds=10)

    in_world(body, default_fault("D2", CREATE))


def test_a_body_that_is_no_json_can_be_had() -> None:
    async def body(world: World) -> None:
        with pytest.raises(ApiError, match="UndecodableAnswer"):
            await world.client.list(CONFIG)

    in_world(body, a_fault(Action.BAD_BODY, Point("hub", "list")))


@pytest.mark.parametrize(
    ("action", "is_committed"), [(Action.CRASH_BEFORE, False), (Action.CRASH_AFTER, True)]
)
@pytest.mark.fault("A1", "A2")
def test_a_crash_at_a_write_ends_the_process_there(action: Action, is_committed: bool) -> None:
    async def body(world: World) -> None:
        after: list[str] = []
        crashed = asyncio.Event()
        world.life.on_crash = lambda _: crashed.set()

        async def operate() -> None:
            try:
                await world.client.create(CONFIG, a_config())
                after.append("went on")
            finally:
                await world.client.create(CONFIG, a_config("cleanup"))

        watching = await world.watching()
        operator = asyncio.create_task(operate())
        await crashed.wait()
        operator.cancel()
        await asyncio.wait([operator])
        assert after == []
        assert isinstance(operator.exception(), ConnectionRefusedError)
        assert await world.exists() is is_committed
        assert not await world.exists("cleanup")
        assert world.life.crashes == 1
        await world.honest.create(CONFIG, a_config("later"))
        await world.clock.sleep(SECOND)
        assert watching.received == []
        await watching.stop()

    in_world(body, a_fault(action, CREATE))


def test_a_dead_process_reads_no_answer_that_was_under_way() -> None:
    async def body(world: World) -> None:
        slow = asyncio.create_task(world.client.create(CONFIG, a_config("slow")))
        await world.clock.sleep(SECOND)
        crashing = asyncio.create_task(world.client.create(CONFIG, a_config()))
        await world.clock.sleep(timedelta(minutes=1))
        assert await world.exists("slow")
        assert not slow.done()
        for task in (slow, crashing):
            task.cancel()
        await asyncio.wait([slow, crashing])

    slow_one = Point("hub", "create", "ConfigMap", "default/slow")
    in_world(body, default_fault("D2", slow_one), default_fault("A1", CREATE))


@pytest.mark.parametrize(
    ("point", "struck"),
    [
        (Point(nth=3), [3]),
        (Point(nth=2, times=2), [2, 3]),
        (Point(nth=2, times=0), [2, 3, 4, 5, 6]),
        (Point(nth=1, times=0, every=3), [1, 4]),
        (Point(nth=2, times=2, every=2), [2, 4]),
        (Point(verb="write"), [1]),
        (Point(kind="Secret"), []),
        (Point(plane="cell"), []),
        (Point(key="default/b"), []),
        (Point(subresource="status"), []),
        (Point(subresource=""), [1]),
        (Point(times=0, after=timedelta(seconds=2), until=timedelta(seconds=4)), [3, 4]),
    ],
)
def test_points_are_counted_and_struck_as_the_plan_says(point: Point, struck: list[int]) -> None:
    async def body(world: World) -> None:
        failed: list[int] = []
        for number in range(1, 7):
            try:
                await world.client.create(CONFIG, a_config(f"c{number}"))
            except ApiError:
                failed.append(number)
            await world.clock.sleep(SECOND)
        assert failed == struck
        assert len(list(world.history.of(Injected))) == len(struck)

    in_world(body, default_fault("C4", point))


def test_faults_can_be_armed_and_lifted_while_the_world_goes_on() -> None:
    async def body(world: World) -> None:
        world.injector.arm(default_fault("C4", Point(times=0)))
        with pytest.raises(ApiError):
            await world.client.create(CONFIG, a_config())
        world.injector.disarm("C4")
        await world.client.create(CONFIG, a_config())

    in_world(body)


EVENT = Point("hub", "watch", "ConfigMap", "default/a")


async def write_three(world: World) -> None:
    """Write the events Aa1, Ma2, Ab1 to the stream of ConfigMaps."""
    made = await world.honest.create(CONFIG, a_config(k="1"))
    object_at(made, "data")["k"] = "2"
    await world.honest.update(CONFIG, made)
    await world.honest.create(CONFIG, a_config("b", k="1"))
    await world.clock.sleep(SECOND)


def expect_events(expected: list[str], later: list[str] | None = None) -> Body:
    """A test body: three events are written; `expected` arrives at once, `later` after a minute."""

    async def body(world: World) -> None:
        watching = await world.watching()
        await world.clock.sleep(SECOND)
        await write_three(world)
        assert watching.received == expected
        await world.clock.sleep(timedelta(seconds=45))
        assert watching.received == (expected if later is None else later)
        assert not watching.has_ended
        await watching.stop()

    return body


def test_without_faults_every_event_arrives_in_order() -> None:
    in_world(expect_events(["Aa1", "Ma2", "Ab1"]))


@pytest.mark.fault("B1")
def test_a_dropped_event_never_arrives() -> None:
    in_world(
        expect_events(["Aa1", "Ab1"]),
        default_fault("B1", Point("hub", "watch", key="default/a", nth=2)),
    )


@pytest.mark.fault("B1")
def test_a_watch_that_lost_an_event_can_end_so_that_its_client_lists() -> None:
    async def body(world: World) -> None:
        watching = await world.watching()
        await world.clock.sleep(SECOND)
        await write_three(world)
        assert watching.received == ["Aa1", "Ab1"]
        assert not watching.has_ended
        await world.clock.sleep(timedelta(seconds=10))
        assert type(watching.error) is ExpiredError

    lost = Point("hub", "watch", key="default/a", nth=2)
    in_world(body, a_fault(Action.DROP_UNTIL_RELIST, lost, delay=timedelta(seconds=10)))


@pytest.mark.fault("B3")
def test_a_duplicate_arrives_twice() -> None:
    in_world(expect_events(["Aa1", "Aa1", "Ma2", "Ab1"]), default_fault("B3", EVENT))


@pytest.mark.fault("B3")
def test_bookmarks_can_be_noise() -> None:
    in_world(
        expect_events(["Aa1", "B", "B", "Ma2", "Ab1"]),
        a_fault(Action.BOOKMARK_NOISE, EVENT, count=2),
    )


def test_an_event_can_be_delayed_past_the_next() -> None:
    in_world(expect_events(["Ma2", "Aa1", "Ab1"]), a_fault(Action.DELAY_PAST_NEXT, EVENT))


def test_a_delayed_event_without_a_successor_arrives_late() -> None:
    last = Point("hub", "watch", key="default/b")

    in_world(
        expect_events(["Aa1", "Ma2"], later=["Aa1", "Ma2", "Ab1"]),
        a_fault(Action.DELAY_PAST_NEXT, last, delay=timedelta(seconds=30)),
    )


@pytest.mark.fault("B4")
def test_an_event_can_wait_for_one_of_another_kind() -> None:
    async def body(world: World) -> None:
        configs, secrets = await world.watching(), await world.watching(SECRET)
        await world.clock.sleep(SECOND)
        await write_three(world)
        assert configs.received == ["Ma2", "Ab1"]
        secret: JsonObject = {"metadata": {"name": "s", "namespace": "default"}}
        await world.honest.create(SECRET, secret)
        await world.clock.sleep(SECOND)
        assert secrets.received == ["As"]
        assert configs.received == ["Ma2", "Ab1", "Aa1"]
        await configs.stop()
        await secrets.stop()

    in_world(body, default_fault("B4", EVENT))


@pytest.mark.fault("B5")
def test_a_stale_reader_is_some_events_behind_and_catches_up() -> None:
    in_world(
        expect_events(["Aa1"], later=["Aa1", "Ma2", "Ab1"]),
        a_fault(Action.STALE, EVENT, count=2, delay=timedelta(seconds=30)),
    )


@pytest.mark.fault("B5")
def test_the_stalest_reader_sees_nothing_for_a_while() -> None:
    in_world(
        expect_events([], later=["Aa1", "Ma2", "Ab1"]),
        a_fault(Action.STALE, EVENT, count=0, delay=timedelta(seconds=30)),
    )


@pytest.mark.fault("B7")
def test_a_silent_watch_delivers_nothing_and_does_not_end() -> None:
    in_world(expect_events(["Aa1"]), default_fault("B7", Point("hub", "watch", nth=2)))


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (default_fault("B8", EVENT), ConnectionResetError),
        (a_fault(Action.GARBAGE, EVENT), WatchEndedError),
        (default_fault("B6", EVENT), ExpiredError),
        (a_fault(Action.ERROR_EVENT, EVENT, status=500), ApiError),
        (a_fault(Action.END_STREAM, EVENT), type(None)),
    ],
)
@pytest.mark.fault("B6", "B8")
def test_a_watch_can_break_in_many_ways(fault: Fault, error: type[Exception]) -> None:
    async def body(world: World) -> None:
        watching = await world.watching()
        await world.clock.sleep(SECOND)
        await write_three(world)
        assert watching.has_ended
        assert watching.received == []
        assert type(watching.error) is error
        assert not world.plane.state.streams

    in_world(body, fault)


def test_a_cut_line_is_really_cut() -> None:
    async def body(world: World) -> None:
        answer = await world.transport.request("GET", "/api/v1/configmaps?watch=1", {}, None)
        await world.honest.create(CONFIG, a_config())
        received = b""
        with pytest.raises(ConnectionResetError):
            received = await _read_until_broken(answer)
        assert received == b""
        await answer.close()

    in_world(body, default_fault("B8", EVENT))


async def _read_until_broken(answer: Response) -> bytes:
    received = b""
    async for chunk in answer.chunks():
        received += chunk
        assert not received.endswith(b"\n")
    return received


def test_a_cut_link_refuses_requests_and_resets_watches_until_it_heals() -> None:
    async def body(world: World) -> None:
        watching = await world.watching()
        await world.clock.sleep(SECOND)
        world.link.cut()
        await world.clock.sleep(SECOND)
        assert isinstance(watching.error, ConnectionResetError)
        with pytest.raises(ConnectionRefusedError):
            await world.client.list(CONFIG)
        world.link.heal()
        await world.client.list(CONFIG)

    in_world(body)


def test_a_silent_link_hangs_requests_and_holds_watches_until_it_heals() -> None:
    async def body(world: World) -> None:
        watching = await world.watching()
        await world.clock.sleep(SECOND)
        world.link.cut(LinkState.SILENT)
        await write_three(world)
        assert watching.received == []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await world.client.list(CONFIG)
        world.link.heal()
        await world.clock.sleep(SECOND)
        assert watching.received == ["Aa1", "Ma2", "Ab1"]
        await watching.stop()

    in_world(body)


def test_a_link_can_lose_one_direction_only() -> None:
    async def body(world: World) -> None:
        world.link.cut(reads=False)
        await world.client.list(CONFIG)
        with pytest.raises(ConnectionRefusedError):
            await world.client.create(CONFIG, a_config())
        world.link.heal()
        world.link.cut(writes=False)
        await world.client.create(CONFIG, a_config())
        with pytest.raises(ConnectionRefusedError):
            await world.client.list(CONFIG)

    in_world(body)


@pytest.mark.fault("D2")
def test_a_slow_link_delays_every_call() -> None:
    async def body(world: World) -> None:
        world.link.slow(timedelta(seconds=10))
        await world.client.list(CONFIG)
        await world.client.list(CONFIG)
        assert world.clock.monotonic() == timedelta(seconds=20)

    in_world(body)


def test_two_runs_with_the_same_faults_are_the_same() -> None:
    def a_run(seed: int) -> bytes:
        async def main(clock: VirtualClock) -> bytes:
            faults = (default_fault("C4", Point(times=0, every=3)), default_fault("B1", EVENT))
            world = World(clock, faults)
            world.history.listen("hub", world.plane.state.store)

            async def write(name: str) -> None:
                for turn in range(5):
                    await clock.sleep(timedelta(seconds=clock.random("jitter").random()))
                    with_turn = a_config(f"{name}{turn}")
                    try:
                        await world.client.create(CONFIG, with_turn)
                    except ApiError:
                        await clock.sleep(SECOND)

            watching = await world.watching()
            await asyncio.gather(*(write(name) for name in "abc"))
            await watching.stop()
            await world.plane.close()
            return world.history.dump()

        return run(main, seed=seed, start=START)

    assert a_run(1) == a_run(1)
    assert a_run(1) != a_run(2)
