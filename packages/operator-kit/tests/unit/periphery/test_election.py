"""Decisions of candidates for a Lease, checked by simulating several of them against one server."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compute_operator_kit.config.settings import LeaderElectionSettings
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.process.election import (
    CandidateState,
    CreateStep,
    LeaseLost,
    ObservedLease,
    PauseStep,
    ReadStep,
    StepDown,
    Timing,
    WriteStep,
    plan_step,
)

TIMING = Timing()
ME = "me"


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def a_lease(
    holder: str = "other", version: str = "1", duration: float = 15, uid: str = "u"
) -> ObservedLease:
    return ObservedLease(holder, version, seconds(duration), uid)


def a_candidate(
    lease: ObservedLease | Absent, seen_since: float = 0, read_at: float = 0
) -> CandidateState:
    return CandidateState(ME, lease, seconds(seen_since), seconds(read_at))


def a_leader(lease: ObservedLease | Absent | None, renewed_at: float = 0) -> CandidateState:
    return CandidateState(ME, lease, held_uid="u", renewed_at=seconds(renewed_at))


MINE = a_lease(ME)


@pytest.mark.parametrize(
    ("state", "now", "step"),
    [
        pytest.param(CandidateState(ME), 0, ReadStep(), id="a candidate reads first"),
        pytest.param(a_candidate(Absent()), 0, CreateStep(), id="an absent Lease is created"),
        pytest.param(
            a_candidate(a_lease("")), 0, WriteStep(a_lease("")), id="a released one is taken"
        ),
        pytest.param(
            a_candidate(MINE), 0, WriteStep(MINE), id="a write whose answer was lost is ours"
        ),
        pytest.param(
            a_candidate(a_lease()), 0, PauseStep(seconds(2)), id="a held one is waited for"
        ),
        pytest.param(
            a_candidate(a_lease(), 0, 12), 14, ReadStep(), id="and read every two seconds"
        ),
        pytest.param(
            a_candidate(a_lease(), 0, 14.5),
            14.5,
            PauseStep(seconds(0.5)),
            id="until the moment it ends",
        ),
        pytest.param(
            a_candidate(a_lease(), 0, 14), 15, WriteStep(a_lease()), id="then it is taken"
        ),
        pytest.param(
            a_candidate(a_lease(duration=1), 0, 2),
            2,
            PauseStep(seconds(2)),
            id="a promise too short",
        ),
        pytest.param(
            a_candidate(a_lease(duration=10**6), 0, 60),
            60,
            WriteStep(a_lease(duration=10**6)),
            id="or for ever binds nobody",
        ),
        pytest.param(
            a_leader(MINE), 1, PauseStep(seconds(1)), id="a leader renews every two seconds"
        ),
        pytest.param(a_leader(MINE), 2, WriteStep(MINE), id="at the latest"),
        pytest.param(a_leader(None), 1, ReadStep(), id="one that does not know reads"),
        pytest.param(
            a_leader(None), 9, StepDown(LeaseLost.EXPIRED), id="and stops before the deadline"
        ),
        pytest.param(
            a_leader(MINE), 20, StepDown(LeaseLost.EXPIRED), id="a frozen one stops at once"
        ),
        pytest.param(
            a_leader(Absent()), 1, StepDown(LeaseLost.DELETED), id="a deleted Lease is lost"
        ),
        pytest.param(a_leader(a_lease()), 1, StepDown(LeaseLost.STOLEN), id="a stolen one too"),
        pytest.param(
            a_leader(a_lease(ME, uid="another")),
            1,
            StepDown(LeaseLost.DELETED),
            id="and one made anew under its name",
        ),
    ],
)
def test_a_candidate_does_what_its_state_asks_for(
    state: CandidateState, now: float, step: object
) -> None:
    assert plan_step(state, seconds(now), TIMING) == step


def test_a_lease_that_was_held_and_is_gone_is_left_alone_until_its_leader_has_noticed() -> None:
    held = CandidateState(ME).after_reading(a_lease(), seconds(0))
    gone = held.after_reading(Absent(), seconds(2))
    assert plan_step(gone, seconds(2), TIMING) == PauseStep(seconds(2))
    assert plan_step(gone, seconds(4), TIMING) == ReadStep()
    still = gone.after_reading(Absent(), seconds(16))
    assert plan_step(still, seconds(16.5), TIMING) == PauseStep(seconds(0.5))
    assert plan_step(still, seconds(17), TIMING) == CreateStep()
    released = held.after_reading(a_lease(""), seconds(2)).after_reading(Absent(), seconds(4))
    assert plan_step(released, seconds(4), TIMING) == CreateStep()


@given(
    st.floats(0, 100),
    st.floats(0, 100),
    st.sampled_from([None, Absent(), MINE, a_lease(), a_lease("")]),
)
def test_a_pause_is_never_negative_and_never_longer_than_a_period(
    seen: float, later: float, lease: ObservedLease | Absent | None
) -> None:
    for state in (
        CandidateState(ME, lease, seconds(seen), seconds(seen)),
        CandidateState(ME, lease, seconds(seen), seconds(seen), renewed_at=seconds(seen)),
    ):
        step = plan_step(state, seconds(seen + later), TIMING)
        if isinstance(step, PauseStep):
            assert ZERO < step.delay <= TIMING.retry_period


def test_timing_is_taken_from_the_settings() -> None:
    configured = LeaderElectionSettings(
        lease_duration=seconds(30), renew_deadline=seconds(5), retry_period=seconds(1)
    )

    timing = Timing.of(configured)

    assert timing == Timing(seconds(30), seconds(5), seconds(1))
    assert timing.stop_after == seconds(4.5)  # a tenth of a short deadline is left to the writers


def test_an_unchanged_lease_keeps_its_age_and_a_changed_one_starts_anew() -> None:
    state = CandidateState(ME).after_reading(a_lease(version="1"), seconds(5))

    unchanged = state.after_reading(a_lease(version="1"), seconds(9))
    changed = state.after_reading(a_lease(version="2"), seconds(9))

    assert unchanged.seen_since == seconds(5)
    assert changed.seen_since == seconds(9)


# One server, several candidates, messages that take their time, get lost, or are carried out
# without an answer.


@dataclass
class Server:
    lease: ObservedLease | Absent = field(default_factory=Absent)
    version: int = 0

    def write(self, holder: str, expected: ObservedLease | Absent) -> ObservedLease | None:
        if self.lease != expected:
            return None
        self.version += 1
        self.lease = a_lease(holder, str(self.version))
        return self.lease


@dataclass
class Process:
    """A candidate with a clock of its own origin; `offset` must never matter."""

    state: CandidateState
    offset: timedelta
    wakes_at: timedelta = ZERO

    def local(self, now: timedelta) -> timedelta:
        return now + self.offset

    def may_write(self, now: timedelta) -> bool:
        return self.state.may_write(self.local(now), TIMING)


class Simulation:
    """Advances in steps of a tenth of a second; each request takes up to three and may fail both
    ways.
    """

    def __init__(self, random: Random, processes: int) -> None:
        self.random = random
        self.server = Server()
        self.processes = [
            Process(CandidateState(f"p{number}"), seconds(random.randrange(10**6)))
            for number in range(processes)
        ]
        self.now = ZERO
        self.pending: list[
            tuple[timedelta, Process, ReadStep | CreateStep | WriteStep, timedelta]
        ] = []

    def advance(self, failures: float) -> None:
        self.now += seconds(0.1)
        for process in self.processes:
            if self.now >= process.wakes_at and not self._is_waiting(process):
                self._plan(process)
        due = [item for item in self.pending if item[0] <= self.now]
        self.pending = [item for item in self.pending if item[0] > self.now]
        for _, process, step, sent in due:
            self._carry_out(process, step, sent, self.random.random() < failures)

    def _is_waiting(self, process: Process) -> bool:
        return any(item[1] is process for item in self.pending)

    def _plan(self, process: Process) -> None:
        now = process.local(self.now)
        match plan_step(process.state, now, TIMING):
            case PauseStep(delay=delay):
                process.wakes_at = self.now + delay
            case StepDown():
                # In the real world the process ends here, and another begins.
                process.state = CandidateState(process.state.me + "'")
            case (ReadStep() | CreateStep() | WriteStep()) as step:
                arrives = self.now + seconds(self.random.choice([0, 0.1, 0.2, 0.3]))
                self.pending.append((arrives, process, step, now))

    def _carry_out(
        self,
        process: Process,
        step: ReadStep | CreateStep | WriteStep,
        sent: timedelta,
        is_lost: bool,
    ) -> None:
        if is_lost and self.random.random() < 0.5:
            process.state = process.state.after_failing()  # it never arrived
            return
        match step:
            case ReadStep():
                answer: ObservedLease | Absent | None = self.server.lease
            case CreateStep():
                answer = self.server.write(process.state.me, Absent())
            case WriteStep(lease=lease):
                answer = self.server.write(process.state.me, lease)
        if is_lost:
            process.state = process.state.after_failing()  # written, but the response is lost
        elif isinstance(step, ReadStep) and answer is not None:
            process.state = process.state.after_reading(answer, process.local(self.now))
        elif isinstance(answer, ObservedLease):
            process.state = process.state.after_writing(answer, sent)
        else:
            process.state = process.state.after_conflict()

    @property
    def writers(self) -> list[str]:
        return [p.state.me for p in self.processes if p.may_write(self.now)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(2, 4), st.sampled_from([0.0, 0.2, 0.6]))
def test_there_are_never_two_writers_whatever_gets_lost(
    seed: int, processes: int, failures: float
) -> None:
    simulation = Simulation(Random(seed), processes)  # noqa: S311  # reproducible, not secret

    for _ in range(600):
        simulation.advance(failures)
        assert len(simulation.writers) <= 1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 4))
def test_a_candidate_leads_soon_and_keeps_leading_while_nothing_fails(
    seed: int, processes: int
) -> None:
    simulation = Simulation(Random(seed), processes)  # noqa: S311
    for _ in range(20):
        simulation.advance(0)
    (leader,) = simulation.writers

    for _ in range(600):
        simulation.advance(0)
        assert simulation.writers == [leader]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9), st.integers(2, 4))
def test_after_a_crash_another_leads_within_17_seconds(seed: int, processes: int) -> None:
    random = Random(seed)  # noqa: S311
    simulation = Simulation(random, processes)
    for _ in range(20 + random.randrange(100)):
        simulation.advance(0)
    (leader,) = simulation.writers
    crashed = next(p for p in simulation.processes if p.state.me == leader)
    simulation.processes.remove(crashed)
    simulation.pending = [item for item in simulation.pending if item[1] is not crashed]

    # 17 s, and the tenths that a read and a write take here.
    for _ in range(170 + 8):
        simulation.advance(0)
        if simulation.writers:
            break

    assert simulation.writers
    assert simulation.writers != [leader]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 300))
def test_a_frozen_leader_does_not_write_beside_its_successor(seed: int, frozen_for: int) -> None:
    simulation = Simulation(Random(seed), 3)  # noqa: S311
    for _ in range(30):
        simulation.advance(0)
    (leader,) = simulation.writers
    frozen = next(p for p in simulation.processes if p.state.me == leader)

    # SIGSTOP: it neither plans nor hears, yet what it may do is judged by the time that passed.
    frozen.wakes_at = simulation.now + seconds(frozen_for / 10)
    for _ in range(frozen_for + 100):
        simulation.advance(0)
        assert len(simulation.writers) <= 1
        if simulation.now - seconds(3) >= TIMING.renew_deadline and frozen_for > 120:
            assert leader not in simulation.writers
