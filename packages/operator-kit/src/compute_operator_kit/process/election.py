"""The next step of a candidate for a Lease, as a pure function of what it has read and the time.

Two moments of one renewal must not be confused, or two leaders write at once:

```
 sent      leader sends a renewal           the leader counts its right to write from here,
   │  ┌─── committed by the server
   │  │  ┌─ seen: another candidate reads it  and the others count the Lease's life from here
 ──┴──┴──┴───────────────────────────────────────────────▶ time
   └── renewDeadline ──┘ └────── leaseDuration ──────┘
```

Since `sent` is never later than `seen` and renewDeadline is shorter than leaseDuration, the old
leader has stopped before another candidate may begin, however long requests take. Times are
monotonic and local to one process: neither the wall clock nor the times in the Lease count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeAlias

from compute_operator_kit.config.settings import LeaderElectionSettings
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.objects import Absent

# Controllers are stopped this long before the deadline, so that they have ended by then.
STOP_MARGIN: Final = timedelta(seconds=1)
# No replica writes a leaseDurationSeconds of more than this many times our own.
MAX_LEASE_FACTOR: Final = 4


@dataclass(frozen=True, slots=True)
class Timing:
    lease_duration: timedelta = timedelta(seconds=15)
    renew_deadline: timedelta = timedelta(seconds=10)
    retry_period: timedelta = timedelta(seconds=2)

    @classmethod
    def of(cls, settings: LeaderElectionSettings) -> Timing:
        return cls(settings.lease_duration, settings.renew_deadline, settings.retry_period)

    @property
    def stop_after(self) -> timedelta:
        """How long after a renewal was sent the leader may still write."""
        return self.renew_deadline - min(STOP_MARGIN, self.renew_deadline / 10)


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A Lease as read; equal versions are the same Lease, whatever the times in it."""

    holder: str  # "" when it is released
    version: str
    duration: timedelta
    uid: str


@dataclass(frozen=True, slots=True)
class CandidateState:
    """The knowledge of one candidate. Moments are of its own monotonic clock."""

    me: str
    lease: ObservedLease | Absent | None = None  # None: not read yet, or outdated
    seen_since: timedelta = ZERO  # since when every read gave `lease`
    read_at: timedelta = ZERO
    was_held: bool = False  # another candidate held the Lease that is absent now
    held_uid: str = ""  # of the Lease we hold: a recreated one is another
    # When the last successful renewal was sent; None: not leading.
    renewed_at: timedelta | None = None

    def after_reading(self, lease: ObservedLease | Absent, now: timedelta) -> CandidateState:
        is_same = lease == self.lease
        was_held = self.was_held  # kept where the Lease is absent now
        if isinstance(lease, ObservedLease):
            was_held = lease.holder not in {"", self.me}
        return replace(
            self,
            lease=lease,
            seen_since=self.seen_since if is_same else now,
            read_at=now,
            was_held=was_held,
        )

    def after_writing(self, lease: ObservedLease, sent: timedelta) -> CandidateState:
        """We hold the Lease, at the version that we wrote."""
        held = lease.uid if self.renewed_at is None else self.held_uid
        return replace(
            self, lease=lease, seen_since=sent, read_at=sent, held_uid=held, renewed_at=sent
        )

    def after_conflict(self) -> CandidateState:
        """Another candidate wrote first; the next read shows which, and starts its time anew."""
        return CandidateState(self.me, held_uid=self.held_uid, renewed_at=self.renewed_at)

    def after_failing(self) -> CandidateState:
        """A request failed, so a leader must read the Lease again; a candidate keeps its times."""
        return replace(self, lease=None) if self.renewed_at is not None else self

    def may_write(self, now: timedelta, timing: Timing) -> bool:
        return self.renewed_at is not None and now - self.renewed_at < timing.stop_after


class LeaseLost(StrEnum):
    """The reason for which leadership ended."""

    EXPIRED = "LeaseNotRenewed"
    DELETED = "LeaseDeleted"
    STOLEN = "LeaseTaken"


@dataclass(frozen=True, slots=True)
class ReadStep:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class CreateStep:
    """Create the Lease with our name."""


@dataclass(frozen=True, slots=True)
class WriteStep:
    """Write our name, on condition that the Lease is still at this version."""

    lease: ObservedLease


@dataclass(frozen=True, slots=True)
class PauseStep:
    """Wait."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class StepDown:
    """Stop all controllers now."""

    why: LeaseLost


Step: TypeAlias = ReadStep | CreateStep | WriteStep | PauseStep | StepDown


def plan_step(state: CandidateState, now: timedelta, timing: Timing) -> Step:
    """Called again after every step."""
    if state.renewed_at is not None:
        return _plan_as_leader(state, now - state.renewed_at, timing)
    return _plan_as_candidate(state, now, timing)


def _plan_as_leader(state: CandidateState, age: timedelta, timing: Timing) -> Step:
    # The deadline is tested first: after a freeze of the process no other step may come before it.
    if age >= timing.stop_after:
        return StepDown(LeaseLost.EXPIRED)
    match state.lease:
        case None:
            return ReadStep()
        case Absent():
            # Another candidate may have held and released it in between, so it is not recreated.
            return StepDown(LeaseLost.DELETED)
        case ObservedLease(holder=holder) if holder != state.me:
            return StepDown(LeaseLost.STOLEN)
        case ObservedLease(uid=uid) if uid != state.held_uid:
            # An update of an absent Lease may create it; that too was a deletion.
            return StepDown(LeaseLost.DELETED)
        case ObservedLease() if age < timing.retry_period:
            return PauseStep(timing.retry_period - age)
        case ObservedLease() as mine:
            return WriteStep(mine)


def _plan_as_candidate(state: CandidateState, now: timedelta, timing: Timing) -> Step:
    match state.lease:
        case None:
            return ReadStep()
        case Absent() if state.was_held:
            # The former holder notices the deletion at its next renewal and writes until then.
            return _await(state, timing.lease_duration, now, timing) or CreateStep()
        case Absent():
            return CreateStep()
        # Our own name: the response to our write was lost. No other process has this name.
        case ObservedLease(holder=holder) as free if holder in {"", state.me}:
            return WriteStep(free)
        case ObservedLease() as held:
            return _await(state, _life_of(held, timing), now, timing) or WriteStep(held)


def _await(state: CandidateState, life: timedelta, now: timedelta, timing: Timing) -> Step | None:
    """Reads the Lease until it has been unchanged for `life`; None: it has."""
    left = life - (now - state.seen_since)
    until_read = timing.retry_period - (now - state.read_at)
    if left <= ZERO:
        return None
    return PauseStep(min(left, until_read)) if until_read > ZERO else ReadStep()


def _life_of(held: ObservedLease, timing: Timing) -> timedelta:
    """How long a Lease holds without renewal: at least our own duration, and never for ever."""
    return max(timing.lease_duration, min(held.duration, timing.lease_duration * MAX_LEASE_FACTOR))
