"""The loop around the decisions, on a virtual clock: hours of leading take milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from typing_extensions import override

from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.client.interface import AlreadyExists
from compute_operator_kit.core.errors import (
    ConflictError,
    ForbiddenError,
    OutcomeUnknownError,
    ReconcileError,
    UnavailableError,
)
from compute_operator_kit.core.json import (
    JsonMapping,
    JsonObject,
    decode_json_object,
    encode,
    member_object,
)
from compute_operator_kit.core.keys import ObjectKey, PlaneName
from compute_operator_kit.core.metrics import NoMetrics
from compute_operator_kit.core.objects import Absent, Snapshot, parse_object
from compute_operator_kit.process.election import LeaseLost
from compute_operator_kit.process.leader import (
    LEASE,
    Candidacy,
    Election,
    LeaseLostError,
    derive_identity,
    find_namespace,
)

KEY = ObjectKey(PlaneName("home"), LEASE, "compute-system", "compute-cell-operator")
START = datetime(2026, 1, 1, tzinfo=UTC)


class _JumpingSelector(selectors.SelectSelector):
    """Moves time instead of waiting for it."""

    elapsed = 0.0

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout and timeout > 0:
            self.elapsed += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = _JumpingSelector()
        super().__init__(self.jumping)

    @override
    def time(self) -> float:
        return self.jumping.elapsed


class VirtualClock:
    """The loop's time; the wall clock may be wrong by any `error`."""

    def __init__(self) -> None:
        self.error = timedelta()

    def now(self) -> datetime:
        return START + self.monotonic() + self.error

    def monotonic(self) -> timedelta:
        return timedelta(seconds=asyncio.get_running_loop().time())

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(delay.total_seconds())


class Server:
    """One Lease on one plane."""

    def __init__(self) -> None:
        self.body: JsonObject | None = None
        self.version = 0
        self.writes = 0

    @property
    def spec(self) -> JsonObject:
        assert self.body is not None
        return member_object(self.body, "spec")

    def is_held_by(self, holder: str) -> bool:
        return self.body is not None and self.spec.get("holderIdentity") == holder

    def store(self, body: JsonMapping) -> Snapshot:
        self.version += 1
        self.writes += 1
        stored = decode_json_object(encode(body))
        metadata = member_object(stored, "metadata")
        metadata["resourceVersion"] = str(self.version)
        metadata.setdefault("uid", f"u-{self.version}")
        self.body = stored
        return self.snapshot()

    def snapshot(self) -> Snapshot:
        assert self.body is not None
        return parse_object(KEY.plane, LEASE, decode_json_object(encode(self.body)), None).snapshot

    def steal(self, holder: str) -> None:
        assert self.body is not None
        self.store(self.body | {"spec": self.spec | {"holderIdentity": holder}})


class Link:
    """One candidate's way to the server, which can be cut in several manners."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.error: ReconcileError | None = None
        self.hangs = False
        self.loses_answers = False

    async def get(self, key: ObjectKey) -> Snapshot | Absent:
        await self._travel(key)
        return self.server.snapshot() if self.server.body is not None else Absent()

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists:
        await self._travel(key)
        if self.server.body is not None:
            return AlreadyExists()
        return self._answer(self.server.store(body))

    async def update(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        await self._travel(key)
        sent = decode_json_object(encode(body))
        # A real server takes the UID as a precondition, so one that is gone is a conflict too.
        is_gone = self.server.body is None
        if is_gone or member_object(sent, "metadata")["resourceVersion"] != str(
            self.server.version
        ):
            raise ConflictError("Conflict", "updating Lease: it has changed")
        return self._answer(self.server.store(body))

    async def _travel(self, key: ObjectKey) -> None:
        assert key == KEY
        await asyncio.sleep(0.01)
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    def _answer(self, answer: Snapshot) -> Snapshot:
        if self.loses_answers:
            raise OutcomeUnknownError("Timeout", "updating Lease: no answer")
        return answer


class LeadingNoted(NoMetrics):
    """Records the gauge of leadership, in order."""

    def __init__(self) -> None:
        self.leading: list[float] = []

    @override
    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        assert (name, labels) == ("leader_election_master_status", {"name": KEY.name})
        self.leading.append(value)


class Replica:
    """One process: an election, and writers that note when they run."""

    def __init__(self, server: Server, name: str, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.link = Link(server)
        self.measures = LeadingNoted()
        self.election = Election(
            self.link,
            Candidacy(KEY, name),
            clock=self.clock,
            random=Random(1),  # noqa: S311  # reproducible, not secret
            measures=self.measures,
        )
        self.wrote_until = timedelta()
        self.is_writing = False
        self.task = asyncio.create_task(self.election.lead(self._write))

    async def _write(self) -> None:
        self.is_writing = True
        try:
            while True:
                assert self.election.is_leading
                self.wrote_until = self.clock.monotonic()
                await asyncio.sleep(0.05)
        finally:
            self.is_writing = False

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})

    async def outcome(self) -> BaseException | None:
        await asyncio.wait({self.task})
        return self.task.exception()


def on_a_virtual_clock(
    test: Callable[[], Coroutine[None, None, None]],
) -> Callable[[], None]:
    """Runs an async test on a loop with time that jumps."""

    def run() -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test())

    run.__name__ = test.__name__
    return run


def now() -> timedelta:
    return timedelta(seconds=asyncio.get_running_loop().time())


async def until(condition: Callable[[], bool], longest: float = 60) -> timedelta:
    began = now()
    async with asyncio.timeout(longest):
        while not condition():  # noqa: ASYNC110  # virtual time passes only by sleeping
            await asyncio.sleep(0.01)
    return now() - began


@on_a_virtual_clock
async def test_a_lone_candidate_creates_the_lease_and_keeps_it() -> None:
    server = Server()
    replica = Replica(server, "a")

    await until(lambda: replica.is_writing)
    await asyncio.sleep(3600)

    assert replica.is_writing
    assert server.is_held_by("a")
    assert server.spec["leaseDurationSeconds"] == 15
    assert server.spec["leaseTransitions"] == 0
    assert server.spec["acquireTime"] == "2026-01-01T00:00:00.010000Z"
    # One renewal every two seconds, a tenth sooner at most: no hot loop, no gap.
    assert 1750 <= server.writes <= 2050
    assert replica.measures.leading == [0.0, 1.0]
    await replica.stop()


@on_a_virtual_clock
async def test_a_standby_takes_over_within_3_seconds_of_a_stop() -> None:
    server = Server()
    leader = Replica(server, "a")
    await until(lambda: leader.is_writing)
    standby = Replica(server, "b")
    await asyncio.sleep(60)
    assert not standby.is_writing

    await leader.stop()

    assert not leader.is_writing
    assert server.is_held_by("")
    assert await until(lambda: standby.is_writing) <= timedelta(seconds=3)
    assert server.is_held_by("b")
    assert server.spec["leaseTransitions"] == 1
    assert leader.measures.leading == [0.0, 1.0, 0.0]
    await standby.stop()


@on_a_virtual_clock
async def test_after_a_crash_a_standby_leads_within_17_seconds_and_not_before_writers_stop() -> (
    None
):
    server = Server()
    leader = Replica(server, "a")
    await until(lambda: leader.is_writing)
    standby = Replica(server, "b")
    await asyncio.sleep(30)

    crashed_at = now()
    leader.link.hangs = True  # from the server's side a crash and a cut are the same
    took = await until(lambda: standby.is_writing)

    assert took <= timedelta(seconds=17.1)  # and the requests it took
    assert leader.wrote_until - crashed_at < timedelta(seconds=10)
    assert leader.wrote_until < now() - timedelta(seconds=4)
    assert isinstance(await leader.outcome(), LeaseLostError)
    await standby.stop()


UNWRITABLE: Mapping[str, Callable[[Link], None]] = {
    "away": lambda link: setattr(link, "error", UnavailableError("PlaneAway", "away")),
    "forbidden": lambda link: setattr(link, "error", ForbiddenError("Forbidden", "no")),
    "hanging": lambda link: setattr(link, "hangs", True),
}


@pytest.mark.parametrize("manner", UNWRITABLE)
def test_a_leader_that_cannot_renew_stops_its_writers_before_the_deadline(manner: str) -> None:
    async def run() -> None:
        replica = Replica(Server(), "a")
        await until(lambda: replica.is_writing)
        await asyncio.sleep(7)

        UNWRITABLE[manner](replica.link)
        cut_at = now()
        lost = await replica.outcome()

        assert isinstance(lost, LeaseLostError)
        assert lost.why is LeaseLost.EXPIRED
        assert replica.wrote_until - cut_at < timedelta(seconds=10)
        # It did not give up early either: a short outage must not cost the leadership.
        assert replica.wrote_until - cut_at > timedelta(seconds=6)
        assert replica.measures.leading[-1] == 0.0

    on_a_virtual_clock(run)()


@on_a_virtual_clock
async def test_an_outage_shorter_than_the_deadline_changes_nothing() -> None:
    replica = Replica(Server(), "a")
    await until(lambda: replica.is_writing)

    for _ in range(10):
        replica.link.error = UnavailableError("PlaneAway", "away")
        await asyncio.sleep(5)
        replica.link.error = None
        await asyncio.sleep(5)

    assert replica.is_writing
    await replica.stop()


@on_a_virtual_clock
async def test_a_deleted_lease_ends_the_leadership_within_10_seconds() -> None:
    server = Server()
    replica = Replica(server, "a")
    await until(lambda: replica.is_writing)

    server.body = None
    deleted_at = now()
    lost = await replica.outcome()

    assert isinstance(lost, LeaseLostError)
    assert lost.why is LeaseLost.DELETED
    assert replica.wrote_until - deleted_at < timedelta(seconds=10)
    assert server.body is None  # not recreated by a process that does not lead


@on_a_virtual_clock
async def test_a_lease_made_anew_in_our_name_is_not_the_one_we_held() -> None:
    server = Server()
    replica = Replica(server, "a")
    await until(lambda: replica.is_writing)

    assert server.body is not None
    metadata = member_object(server.body, "metadata") | {"uid": "another"}
    server.store(server.body | {"metadata": metadata})
    lost = await replica.outcome()

    assert isinstance(lost, LeaseLostError)
    assert lost.why is LeaseLost.DELETED


@on_a_virtual_clock
async def test_a_stolen_lease_ends_the_leadership_within_10_seconds() -> None:
    server = Server()
    replica = Replica(server, "a")
    await until(lambda: replica.is_writing)

    server.steal("thief")
    stolen_at = now()
    lost = await replica.outcome()

    assert isinstance(lost, LeaseLostError)
    assert lost.why is LeaseLost.STOLEN
    assert replica.wrote_until - stolen_at < timedelta(seconds=10)
    assert server.is_held_by("thief")


@on_a_virtual_clock
async def test_a_lease_that_another_client_only_touched_is_kept() -> None:
    server = Server()
    replica = Replica(server, "a")
    await until(lambda: replica.is_writing)

    for _ in range(10):
        server.steal("a")  # a new version, the same holder
        await asyncio.sleep(3)

    assert replica.is_writing
    await replica.stop()


@on_a_virtual_clock
async def test_a_renewal_with_a_lost_answer_is_read_before_it_is_sent_again() -> None:
    server = Server()
    replica = Replica(server, "a")
    await until(lambda: replica.is_writing)

    replica.link.loses_answers = True
    await asyncio.sleep(4)
    replica.link.loses_answers = False
    await asyncio.sleep(60)

    assert replica.is_writing
    await replica.stop()


@on_a_virtual_clock
async def test_a_creation_with_a_lost_answer_is_recognised_as_ours() -> None:
    server = Server()
    replica = Replica(server, "a")
    replica.link.loses_answers = True
    await until(lambda: server.body is not None)
    replica.link.loses_answers = False

    assert await until(lambda: replica.is_writing) < timedelta(seconds=3)
    await replica.stop()


@on_a_virtual_clock
async def test_wrong_wall_clocks_and_their_steps_change_nothing() -> None:
    server = Server()
    clock = VirtualClock()
    leader, standby = Replica(server, "a", clock), Replica(server, "b")
    await until(lambda: leader.is_writing or standby.is_writing)
    first, second = (leader, standby) if leader.is_writing else (standby, leader)

    for error in (timedelta(minutes=10), timedelta(minutes=-10), timedelta(hours=-1)):
        first.clock.error = error
        second.clock.error = -error
        before = server.writes
        await asyncio.sleep(120)
        assert first.is_writing
        assert not second.is_writing
        assert 50 <= server.writes - before <= 70  # neither a hot loop nor a pause

    await first.stop()
    await until(lambda: second.is_writing, longest=3)
    await second.stop()


@on_a_virtual_clock
async def test_after_a_freeze_nothing_is_written_any_more() -> None:
    replica = Replica(Server(), "a")
    await until(lambda: replica.is_writing)

    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.jumping.elapsed += 20  # SIGSTOP and SIGCONT: no task ran, time did

    assert not replica.election.is_leading
    failure = await replica.outcome()
    # Either the keeper noticed first, or the writer's own look at `is_leading` did.
    assert isinstance(failure, LeaseLostError | AssertionError)


@on_a_virtual_clock
async def test_fields_of_others_on_the_lease_survive() -> None:
    server = Server()
    spec: JsonObject = {"holderIdentity": "", "leaseTransitions": 4, "strategy": "OldestEmulation"}
    metadata: JsonObject = {"name": KEY.name, "namespace": KEY.namespace, "labels": {"a": "b"}}
    server.store({"metadata": metadata, "spec": spec})

    replica = Replica(server, "a")
    await until(lambda: replica.is_writing)

    assert server.spec["strategy"] == "OldestEmulation"
    assert server.spec["leaseTransitions"] == 5
    assert server.body is not None
    assert member_object(server.body, "metadata")["labels"] == {"a": "b"}
    await replica.stop()


@on_a_virtual_clock
async def test_writers_that_fail_give_the_lease_back_and_say_why() -> None:
    server = Server()
    replica = Replica(server, "a")

    async def fail() -> None:
        raise ValueError("our bug")

    await replica.stop()
    with pytest.raises(ValueError, match="our bug"):
        await replica.election.lead(fail)

    assert server.is_held_by("")


@on_a_virtual_clock
async def test_a_lease_that_cannot_be_given_back_does_not_hold_up_the_stop() -> None:
    server = Server()
    replica = Replica(server, "a")
    await until(lambda: replica.is_writing)
    replica.link.hangs = True

    began = now()
    await replica.stop()

    assert now() - began <= timedelta(seconds=2.1)
    assert server.is_held_by("a")


@on_a_virtual_clock
async def test_a_candidate_outlives_any_outage() -> None:
    server = Server()
    replica = Replica(server, "a")
    replica.link.error = UnavailableError("PlaneAway", "away")
    await asyncio.sleep(3600)

    replica.link.error = None

    assert await until(lambda: replica.is_writing) <= timedelta(seconds=3)
    await replica.stop()


def test_the_lease_lives_where_the_operator_does() -> None:
    assert find_namespace("configured", {"POD_NAMESPACE": "pod"}, "own") == "configured"
    assert find_namespace("", {"POD_NAMESPACE": "pod"}, "own") == "pod"
    assert find_namespace("", {}, "own") == "own"
    with pytest.raises(ConfigurationError, match=r"leaderElection\.namespace: is required"):
        find_namespace("", {}, "")


def test_no_namespace_is_asked_for_where_there_is_no_election() -> None:
    assert find_namespace("", {}, "", is_elected=False) == "default"
    assert find_namespace("", {"POD_NAMESPACE": "pod"}, "own", is_elected=False) == "pod"


def test_an_identity_is_of_one_process_alone() -> None:
    assert derive_identity("pod-1", "host", "x7") == "pod-1_x7"
    assert derive_identity("", "host", "x7") == "host_x7"
