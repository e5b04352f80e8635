"""What a candidate for a Lease does next: a pure function of what it has read, when, and what time
it is now.

Two words easily confused:

```
 sent      leader sends a renewal           the leader counts its right to write from here …
   │  ┌─── committed by the server
   │  │  ┌─ seen: another candidate reads it … and the others count the Lease's life from here
 ──┴──┴──┴───────────────────────────────────────────────▶ time
   └── renewDeadline ──┘ └────── leaseDuration ──────┘
```

Since `sent` is never later than `seen` and renewDeadline is shorter than leaseDuration, the old
leader has stopped before anybody else may begin, whatever the network does in between. Times are
monotonic and local to one process: the clock on the wall and the times written in the Lease decide
nothing. No I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeAlias

from compute_operator_kit.clock import ZERO
from compute_operator_kit.objects import Absent
from compute_operator_kit.settings import LeaderElectionSettings

# Writers are told to stop this long before the deadline, so that they have stopped when it ends.
STOP_MARGIN: Final = timedelta(seconds=1)
# A Lease that promises more than this many times our own duration was not written by one of us.
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
class Found:
    """A Lease as read; equal versions are the same Lease, whatever its times say."""

    holder: str  # "" when it was released
    version: str
    duration: timedelta
    uid: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything one candidate knows. The moments are of its own monotonic clock."""

    me: str
    found: Found | Absent | None = None  # None: not read yet, or not to be trusted any more
    seen_since: timedelta = ZERO  # when `found` was first seen like this
    read_at: timedelta = ZERO
    was_held: bool = False  # somebody else led under the Lease that is absent now
    held_uid: str = ""  # of the Lease we lead under: one made anew under its name is another
    renewed_at: timedelta | None = None  # when the last renewal that worked was sent; None: not led

    def after_reading(self, found: Found | Absent, now: timedelta) -> Standing:
        is_same = found == self.found
        was_held = self.was_held  # still says so where it is gone now
        if isinstance(found, Found):
            was_held = found.holder not in {"", self.me}
        return replace(
            self,
            found=found,
            seen_since=self.seen_since if is_same else now,
            read_at=now,
            was_held=was_held,
        )

    def after_writing(self, found: Found, sent: timedelta) -> Standing:
        """We hold it: our own write is the newest thing known."""
        held = found.uid if self.renewed_at is None else self.held_uid
        return replace(
            self, found=found, seen_since=sent, read_at=sent, held_uid=held, renewed_at=sent
        )

    def after_conflict(self) -> Standing:
        """Somebody wrote first: who, says the next read, and how long from that moment on."""
        return Standing(self.me, held_uid=self.held_uid, renewed_at=self.renewed_at)

    def after_failing(self) -> Standing:
        """A request went wrong, so what the Lease says now is unknown; how long it was seen still
        counts.
        """
        return replace(self, found=None) if self.renewed_at is not None else self

    def may_write(self, now: timedelta, timing: Timing) -> bool:
        return self.renewed_at is not None and now - self.renewed_at < timing.stop_after


class Lost(StrEnum):
    """Why a leader is none any more."""

    EXPIRED = "LeaseNotRenewed"
    DELETED = "LeaseDeleted"
    STOLEN = "LeaseTaken"


@dataclass(frozen=True, slots=True)
class Read:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Create:
    """Nobody holds it: create it in our name."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write our name, provided the Lease is still at this version."""

    found: Found


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing to do for so long."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class StepDown:
    """Stop all writers now; what was led is led no more."""

    why: Lost


Step: TypeAlias = Read | Create | Write | Pause | StepDown


def plan_step(standing: Standing, now: timedelta, timing: Timing) -> Step:
    """What to do now; asked again after every step."""
    if standing.renewed_at is not None:
        return _plan_as_leader(standing, now - standing.renewed_at, timing)
    return _plan_as_candidate(standing, now, timing)


def _plan_as_leader(standing: Standing, age: timedelta, timing: Timing) -> Step:
    # The deadline goes first: after a freeze of the process nothing else may happen before it is
    # noticed.
    if age >= timing.stop_after:
        return StepDown(Lost.EXPIRED)
    match standing.found:
        case None:
            return Read()
        case Absent():
            # Creating it again would be right only if nobody had held it in between, which nobody
            # can tell.
            return StepDown(Lost.DELETED)
        case Found(holder=holder) if holder != standing.me:
            return StepDown(Lost.STOLEN)
        case Found(uid=uid) if uid != standing.held_uid:
            # A server makes a Lease anew when an absent one is updated; that too was a deletion.
            return StepDown(Lost.DELETED)
        case Found() if age < timing.retry_period:
            return Pause(timing.retry_period - age)
        case Found() as mine:
            return Write(mine)


def _plan_as_candidate(standing: Standing, now: timedelta, timing: Timing) -> Step:
    match standing.found:
        case None:
            return Read()
        case Absent() if standing.was_held:
            # Whoever led under it learns of that with the next renewal, and writes until then.
            return _await(standing, timing.lease_duration, now, timing) or Create()
        case Absent():
            return Create()
        # Our name without our knowing: a write of ours whose answer was lost. The name is this
        # process's alone.
        case Found(holder=holder) as free if holder in {"", standing.me}:
            return Write(free)
        case Found() as held:
            return _await(standing, _life_of(held, timing), now, timing) or Write(held)


def _await(standing: Standing, life: timedelta, now: timedelta, timing: Timing) -> Step | None:
    """Looks at it now and then until it has been like this for so long; None: it has."""
    left = life - (now - standing.seen_since)
    until_read = timing.retry_period - (now - standing.read_at)
    if left <= ZERO:
        return None
    return Pause(min(left, until_read)) if until_read > ZERO else Read()


def _life_of(held: Found, timing: Timing) -> timedelta:
    """How long a Lease lives unrenewed: never less than we would want for ourselves, never for
    ever.
    """
    return max(timing.lease_duration, min(held.duration, timing.lease_duration * MAX_LEASE_FACTOR))
