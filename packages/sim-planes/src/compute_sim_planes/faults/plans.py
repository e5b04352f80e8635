"""Fault plans: scenario, seed, and faults at points, so that one line replays a failing run.

A point is the nth request (or watch event) with a given plane, verb, kind and key. The id of a row
in the fault matrix implies an action and parameters; others must be explicit. `plan_files` reads
and writes the file format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final


class Action(StrEnum):
    """The effect of a fault. The first group applies to requests, the second to watch events."""

    DELAY = "delay"
    ERROR = "error"
    BAD_BODY = "bad-body"
    REFUSE = "refuse"
    RESET = "reset"
    LOSE_REPLY = "lose-reply"
    TIMEOUT = "timeout"
    TIMEOUT_COMMITTED = "timeout-committed"
    CRASH_BEFORE = "crash-before"
    CRASH_AFTER = "crash-after"

    DROP = "drop"
    # The watch ends with 410 after the delay, so that its client lists again.
    DROP_UNTIL_RELIST = "drop-until-relist"
    DUPLICATE = "duplicate"
    DELAY_PAST_NEXT = "delay-past-next"
    SWAP_KINDS = "swap-kinds"
    CUT_LINE = "cut-line"
    SILENCE = "silence"
    GARBAGE = "garbage"
    ERROR_EVENT = "error-event"
    END_STREAM = "end-stream"
    BOOKMARK_NOISE = "bookmark-noise"
    STALE = "stale"


EVENT_ACTIONS: Final = frozenset(
    {
        Action.DROP,
        Action.DROP_UNTIL_RELIST,
        Action.DUPLICATE,
        Action.DELAY_PAST_NEXT,
        Action.SWAP_KINDS,
        Action.CUT_LINE,
        Action.SILENCE,
        Action.GARBAGE,
        Action.ERROR_EVENT,
        Action.END_STREAM,
        Action.BOOKMARK_NOISE,
        Action.STALE,
    }
)


@dataclass(frozen=True, slots=True)
class Point:
    """Where a fault applies; an empty field matches anything. `nth` counts matches from 1."""

    plane: str = ""
    verb: str = ""
    kind: str = ""
    key: str = ""
    subresource: str | None = None
    nth: int = 1
    # How many matches are affected from then on (0: all), and every how many matches.
    times: int = 1
    every: int = 1
    # Only between these times since the start of the run.
    after: timedelta = timedelta()
    until: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of an action, with the defaults of the fault matrix."""

    status: int = 503
    reason: str = ""
    delay: timedelta = timedelta(seconds=10)
    retry_after: timedelta | None = None
    # Copies of a duplicate; events a stale reader lags behind (0: all until the delay is over).
    count: int = 1


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its row in the matrix, action, point and parameters."""

    id: str
    action: Action
    at: Point = field(default_factory=Point)
    parameters: Parameters = field(default_factory=Parameters)


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Everything needed to repeat a run."""

    scenario: str
    seed: int
    faults: tuple[Fault, ...] = ()
    oracles: tuple[str, ...] = ()


class FaultPlanError(ValueError):
    """An invalid plan file; the message names the field."""


# Rows of the matrix that are one action at one point, with their parameters.
DEFAULT_FAULTS: Final[dict[str, tuple[Action, Parameters]]] = {
    "A1": (Action.CRASH_BEFORE, Parameters()),
    "A2": (Action.CRASH_AFTER, Parameters()),
    "B1": (Action.DROP, Parameters()),
    "B3": (Action.DUPLICATE, Parameters()),
    "B4": (Action.SWAP_KINDS, Parameters()),
    "B5": (Action.STALE, Parameters(delay=timedelta(seconds=5))),
    "B6": (Action.ERROR_EVENT, Parameters(status=410, reason="Expired")),
    "B7": (Action.SILENCE, Parameters()),
    "B8": (Action.CUT_LINE, Parameters()),
    "C1": (Action.ERROR, Parameters(status=409, reason="Conflict")),
    "C3": (
        Action.ERROR,
        Parameters(status=429, reason="TooManyRequests", retry_after=timedelta(seconds=5)),
    ),
    "C4": (Action.ERROR, Parameters(status=503, reason="ServiceUnavailable")),
    "C5": (Action.TIMEOUT_COMMITTED, Parameters()),
    "C6": (Action.ERROR, Parameters(status=403, reason="Forbidden")),
    "C8": (Action.ERROR, Parameters(status=500, reason="InternalError")),
    "D2": (Action.DELAY, Parameters()),
}


def default_fault(fault_id: str, at: Point) -> Fault:
    """The fault of a matrix row at a point."""
    if fault_id not in DEFAULT_FAULTS:
        raise FaultPlanError(f"faults: {fault_id!r} is no single action, say which: action")
    action, parameters = DEFAULT_FAULTS[fault_id]
    return Fault(fault_id, action, at, parameters)


def default_parameters(fault_id: str, action: Action) -> Parameters:
    """The parameters of a row for an action; general defaults when it is not the row's action."""
    usual = DEFAULT_FAULTS.get(fault_id)
    return usual[1] if usual is not None and usual[0] is action else Parameters()
