"""A plane that answers as no API server would is judged alone, within bounds, and heals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from compute_operator_kit.apply.guards import find_refusal
from compute_operator_kit.cache.reflector import LIST_AGAIN
from compute_operator_kit.client.flow_control import FlowControl, Limits
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, Page
from compute_operator_kit.client.list_bounds import (
    LIST_TOO_LARGE,
    MOST_BYTES,
    MOST_OBJECTS,
    MOST_PAGES,
    ListBounds,
)
from compute_operator_kit.client.rest import LARGEST_ANSWER, RestConfig
from compute_operator_kit.client.status_errors import LONGEST_RETRY_AFTER, parse_retry_after
from compute_operator_kit.core.errors import (
    LimitExceededError,
    OutcomeUnknownError,
    UnavailableError,
)
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import PlaneName, Role
from compute_operator_kit.core.objects import Unreadable, parse_version
from compute_operator_kit.intents.intents import RequireNone
from compute_operator_kit.planes.engaged_plane import CachedKind, EngagedPlane, Plane, PlaneState
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_operator_kit.testing.fakes import (
    A_KIND,
    FakeClock,
    FixedRandom,
    ScriptedResponse,
    ScriptedTransport,
    a_key,
    a_snapshot,
)

ALPHA = PlaneName("alpha")
WRITER = FieldOwner("example", "compute-example")
MANY_DIGITS = "9" * 4301  # one more than `int` takes
UNLIMITED = Limits(qps=1e9, burst=10**9)


class Answering:
    """A server that a function answers for; watches stay open and silent."""

    def __init__(self, answer: Callable[[int, Mapping[str, list[str]]], ScriptedResponse]) -> None:
        self._answer = answer
        self.asked = 0

    async def request(
        self,
        method: str,  # noqa: ARG002 - every request here reads
        target: str,
        headers: Mapping[str, str],  # noqa: ARG002
        body: bytes | None,  # noqa: ARG002
    ) -> ScriptedResponse:
        query = parse_qs(urlsplit(target).query)
        if "watch" in query:
            return ScriptedResponse(200, hangs=True)
        self.asked += 1
        return self._answer(self.asked, query)


def a_page(*names: str, token: str = "", padding: int = 0) -> ScriptedResponse:
    items = [a_snapshot(a_key(name), text={"x": "x" * padding}).decode() for name in names]
    page: JsonObject = {
        "metadata": {"resourceVersion": "7", "continue": token},
        "items": [*items],
    }
    return ScriptedResponse(200, orjson.dumps(page))


def a_client(
    transport: Answering | ScriptedTransport, lane: FlowControl | None = None
) -> HttpKubeClient:
    lane = lane or FlowControl(ALPHA, FakeClock(), UNLIMITED)
    return HttpKubeClient(RestConfig(ALPHA, Role.PROJECT, transport, lane), WRITER)


class Ground:
    """Planes that are served by functions."""

    def __init__(self, **servers: Answering) -> None:
        self.clock = FakeClock()
        self.servers = servers
        setting = RegistryDeps(self.clock, FixedRandom(0.0), limits=UNLIMITED)
        watched = [CachedKind(Role.PROJECT, A_KIND)]
        self.planes = Planes(self._connect, watched, setting)

    def _connect(self, plane: Plane, lane: FlowControl) -> HttpKubeClient:
        return a_client(self.servers[plane.name], lane)

    def engage(self, name: str) -> EngagedPlane:
        return self.planes.engage(Plane(PlaneName(name), Role.PROJECT))

    async def pass_time(self, length: timedelta = timedelta(seconds=1)) -> None:
        """In steps, so that whatever sleeps for less sleeps again."""
        for _ in range(max(1, int(length.total_seconds()))):
            for _ in range(50):
                await asyncio.sleep(0)
            self.clock.pass_time(timedelta(seconds=1))

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not is_so():
                await self.pass_time()


# AT-02 --------------------------------------------------------------------------------------------


@pytest.mark.spec("AT-02")
@pytest.mark.parametrize(
    ("page", "token", "message"),
    [
        (Page((), "7", "t", MOST_OBJECTS + 1), "", "objects"),
        (Page((), "7", "t", length=MOST_BYTES + 1), "", "bytes"),
        (Page((), "7", "t"), "t", "continues with itself"),
    ],
)
def test_a_list_is_bounded_by_objects_bytes_and_tokens(
    page: Page, token: str, message: str
) -> None:
    with pytest.raises(LimitExceededError, match=message) as raised:
        ListBounds(ALPHA, A_KIND).count(page, token)
    assert (raised.value.reason, raised.value.plane) == (LIST_TOO_LARGE, ALPHA)


@pytest.mark.spec("AT-02")
def test_a_list_is_bounded_by_pages() -> None:
    bounds = ListBounds(ALPHA, A_KIND)
    for number in range(MOST_PAGES):
        bounds.count(Page((), "7", str(number)), "")
    bounds.count(Page((), "7"), "")  # the last one may come a page late
    with pytest.raises(LimitExceededError, match="pages"):
        bounds.count(Page((), "7", "one more"), "")


@pytest.mark.spec("AT-02")
async def test_a_plane_with_endless_lists_is_down_alone_with_a_reason_and_heals() -> None:
    is_hostile = True

    def answer(asked: int, _: Mapping[str, list[str]]) -> ScriptedResponse:
        return a_page(f"n{asked}", token=str(asked)) if is_hostile else a_page("mended")

    hostile, other = Answering(answer), Answering(lambda _asked, _query: a_page("well"))
    ground = Ground(hostile=hostile, other=other)
    engaged, bystander = ground.engage("hostile"), ground.engage("other")
    await ground.until(lambda: bool(engaged.limit))
    assert (engaged.limit, engaged.state) == (LIST_TOO_LARGE, PlaneState.DOWN)
    store = engaged.stores[A_KIND]
    assert len(store) == 0
    assert store.get("default", "n1") == Unreadable(LIST_TOO_LARGE)
    assert bystander.state is PlaneState.UP
    assert hostile.asked == MOST_PAGES + 1
    is_hostile = False
    await ground.pass_time(LIST_AGAIN * 1.2)
    assert (engaged.limit, engaged.state) == ("", PlaneState.UP)
    assert not isinstance(store.get("default", "mended"), Unreadable)
    await ground.planes.close()


@pytest.mark.spec("AT-02")
async def test_a_page_that_is_too_large_is_asked_for_again_smaller_and_at_once() -> None:
    asked: list[int] = []

    def answer(_: int, query: Mapping[str, list[str]]) -> ScriptedResponse:
        limit = int(query["limit"][0])
        asked.append(limit)
        is_large = limit > 100
        return a_page("n", padding=LARGEST_ANSWER if is_large else 10)

    ground = Ground(alpha=Answering(answer))
    engaged = ground.engage("alpha")
    await ground.until(lambda: engaged.is_synced)
    assert asked == [500, 125, 31]
    assert ground.clock.monotonic() <= timedelta(seconds=1)
    await ground.planes.close()


@pytest.mark.fault("B6")
async def test_a_list_that_expires_half_way_begins_again_at_a_bounded_rate() -> None:
    expires = True

    def answer(_: int, query: Mapping[str, list[str]]) -> ScriptedResponse:
        if "continue" not in query:
            return a_page("first", token="second")  # noqa: S106 - a place in a list
        return ScriptedResponse(410, b"{}") if expires else a_page("last")

    server = Answering(answer)
    ground = Ground(alpha=server)
    engaged = ground.engage("alpha")
    await ground.pass_time(timedelta(minutes=5))
    assert not engaged.is_synced
    assert server.asked <= 2 * (7 + 300 / 30)  # seven lists until the back-off is at its most
    expires = False
    await ground.pass_time(timedelta(seconds=40))
    assert engaged.is_synced
    assert len(engaged.stores[A_KIND]) == 2
    await ground.planes.close()


@pytest.mark.spec("AT-02")
async def test_a_guard_that_lists_gives_up_too() -> None:
    endless = Answering(lambda _asked, _query: a_page(token="the same"))  # noqa: S106 - a place in a list
    guard = RequireNone(ALPHA, A_KIND, {"a": "b"}, "default")
    with pytest.raises(LimitExceededError):
        await find_refusal(guard, lambda _: a_client(endless))


# AT-10 --------------------------------------------------------------------------------------------


@pytest.mark.spec("AT-10")
def test_numbers_of_any_length_are_read_within_bounds() -> None:
    assert parse_retry_after({"Retry-After": MANY_DIGITS}) == LONGEST_RETRY_AFTER
    assert parse_version(MANY_DIGITS) == 0
    assert parse_version(str(2**64 - 1)) == 2**64 - 1


@pytest.mark.spec("AT-10")
async def test_a_probe_outlives_a_pause_of_thousands_of_digits() -> None:
    def answer(asked: int, _: Mapping[str, list[str]]) -> ScriptedResponse:
        if asked <= 5:
            return ScriptedResponse(503, b"")
        if asked == 6:
            return ScriptedResponse(503, b"", headers={"Retry-After": MANY_DIGITS})
        return a_page("n")

    ground = Ground(alpha=Answering(answer))
    engaged = ground.engage("alpha")
    await ground.until(lambda: engaged.lane.is_open)
    await ground.pass_time(LONGEST_RETRY_AFTER * 2)
    assert engaged.state is PlaneState.UP
    await ground.planes.close()


@pytest.mark.spec("AT-10")
async def test_a_probe_that_crashed_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    def answer(asked: int, _: Mapping[str, list[str]]) -> ScriptedResponse:
        if asked <= 5:
            return ScriptedResponse(503, b"")
        if asked == 6:
            raise LookupError("a bug")
        return a_page("n")

    ground = Ground(alpha=Answering(answer))
    engaged = ground.engage("alpha")
    await ground.until(lambda: engaged.lane.is_open)
    await ground.pass_time(timedelta(minutes=2))
    assert engaged.state is PlaneState.UP
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "Restarting a task that ended by a bug"
    ]
    await ground.planes.close()


# AT-23 --------------------------------------------------------------------------------------------

OTHERS = [
    pytest.param(a_key("other", plane="alpha"), id="another name"),
    pytest.param(a_key(namespace="elsewhere", plane="alpha"), id="another namespace"),
]


@pytest.mark.spec("AT-23")
@pytest.mark.parametrize("other", OTHERS)
async def test_an_answer_about_another_object_is_an_error_of_its_plane(other: object) -> None:
    assert isinstance(other, type(a_key()))
    answer = ScriptedResponse(200, a_snapshot(other).raw)
    with pytest.raises(UnavailableError, match="another object") as raised:
        await a_client(ScriptedTransport(answer)).get(a_key(plane="alpha"))
    assert raised.value.plane == ALPHA


@pytest.mark.spec("AT-23")
@pytest.mark.parametrize("other", OTHERS)
async def test_a_write_that_is_answered_with_another_object_has_no_known_outcome(
    other: object,
) -> None:
    assert isinstance(other, type(a_key()))
    answer = ScriptedResponse(200, a_snapshot(other).raw)
    with pytest.raises(OutcomeUnknownError):
        await a_client(ScriptedTransport(answer)).patch_merge(a_key(plane="alpha"), {})
