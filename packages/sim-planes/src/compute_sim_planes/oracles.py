"""Oracles over a recorded history: what must hold after every run, whatever went wrong in it.

O3 eventual stability, O7 field ownership, O9 process hygiene, O11 request budget of
`docs/spec/faults.md` 2. Each is a pure function that answers with violations, each of which says
when and what; an empty list is a pass. They judge what happened, never how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from typing_extensions import override

from compute_sim_planes.clock import LoopReport
from compute_sim_planes.history import Commit, Event, History, Injected, Pass, Request
from compute_sim_planes.object_changes import derive_changes

SETTLE: Final = timedelta(seconds=60)
QUIET: Final = timedelta(minutes=10)
BACK_OFF_CAP: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which an oracle does not hold."""

    oracle: str
    at: datetime
    message: str

    @override
    def __str__(self) -> str:
        return f"{self.oracle} at {self.at.isoformat()}: {self.message}"


@dataclass(frozen=True, slots=True)
class Stability:
    """When a run must have come to rest. `settle` is 60 s or twice the longest requeue tier."""

    settle: timedelta = SETTLE
    quiet: timedelta = QUIET
    # Kinds that are written for ever by design.
    restless: frozenset[str] = frozenset({"Lease"})


def last_fault(history: History) -> datetime:
    """When the last fault took effect; the beginning of the run where there was none."""
    return max((entry.at for entry in history.of(Injected)), default=history.begun)


def eventual_stability(
    history: History, *, since: datetime, rules: Stability | None = None
) -> list[Violation]:
    """O3: after `since` and the time to settle, no write on any plane for the quiet time."""
    rules = rules or Stability()
    rest_begins, rest_ends = since + rules.settle, since + rules.settle + rules.quiet
    found = [
        Violation("O3", at, message)
        for at, message in _writes(history, rules.restless)
        if rest_begins < at <= rest_ends
    ]
    if history.now < rest_ends:
        missing = rest_ends - history.now
        message = f"the run ended {missing} before its rest could be seen"
        found.append(Violation("O3", history.now, message))
    return found


def _writes(history: History, restless: frozenset[str]) -> Iterator[tuple[datetime, str]]:
    for entry in history.entries:
        if isinstance(entry, Request) and entry.address.is_write:
            where = entry.address
            if where.kind not in restless and where.resource != "leases":
                who = entry.caller.user_agent or entry.caller.identity
                shown = f"{who} sent {where.verb} {where.kind or where.resource} {where.key}"
                yield entry.begun, f"{shown} to {where.plane} ({entry.status})"
        elif isinstance(entry, Commit) and entry.request is None and entry.kind not in restless:
            yield entry.at, f"{entry.plane} itself changed {entry.kind} {entry.key}"


Owns = Callable[[str], bool]


def owns_nothing(name: str) -> bool:
    del name
    return False


def owns_names(*names: str) -> Owns:
    """Exactly these; one that ends in `*` stands for all that begin so."""
    exact = frozenset(name for name in names if not name.endswith("*"))
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return lambda name: name in exact or (bool(prefixes) and name.startswith(prefixes))


@dataclass(frozen=True, slots=True)
class Ownership:
    """What one writer may change on objects of one kind that it did not make in that write."""

    labels: Owns = owns_nothing
    annotations: Owns = owns_nothing
    finalizers: Owns = owns_nothing
    conditions: Owns = owns_nothing
    # Fields of `.status` other than conditions.
    status: Owns = owns_nothing
    spec: Owns = owns_nothing

    def owner_of(self, part: str) -> Owns:
        owners: dict[str, Owns] = {
            "label": self.labels,
            "annotation": self.annotations,
            "finalizer": self.finalizers,
            "condition": self.conditions,
            "status": self.status,
            "spec": self.spec,
        }
        return owners[part]


# Who wrote, on which plane, which kind: what that writer owns there. None: not one of ours.
OwnershipOf = Callable[[Request, Commit], Ownership | None]


def field_ownership(history: History, ownership_of: OwnershipOf) -> list[Violation]:
    """O7: we change nothing but what is ours, on any object, in any single write."""
    found: list[Violation] = []
    for request in history.of(Request):
        for commit in request.commits:
            owned = ownership_of(request, commit)
            # Who makes or removes a whole object answers for it elsewhere (O1, O4).
            if owned is None or not commit.before or not commit.after:
                continue
            for change in derive_changes(commit.before, commit.after):
                if not owned.owner_of(change.part)(change.name):
                    who = request.caller.user_agent or request.caller.identity
                    message = (
                        f"{who} {change.verb} {change.part} {change.name!r} of {commit.kind} "
                        f"{commit.key} on {commit.plane}"
                    )
                    found.append(Violation("O7", commit.at, message))
    return found


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What is known of a process at its end beside its history."""

    open_spans: Sequence[str] = ()
    error_lines: Sequence[str] = ()
    # Lines at ERROR are a finding only where no fault explains them.
    is_reference_run: bool = False


def process_hygiene(
    history: History, report: LoopReport, facts: ProcessFacts | None = None
) -> list[Violation]:
    """O9: nothing unhandled, and no task, connection or span is left at the end."""
    facts = facts or ProcessFacts()
    left = [
        *(f"unhandled: {text}" for text in report.unhandled),
        *(f"a task is left: {text}" for text in report.pending),
        *(
            f"an answer is left open: {address.verb} {address.resource} on {address.plane}"
            for address in history.open_answers.values()
        ),
        *(f"a span is left open: {name}" for name in facts.open_spans),
    ]
    if facts.is_reference_run:
        left += [f"logged at ERROR without a fault: {line}" for line in facts.error_lines]
    return [Violation("O9", history.now, text) for text in left]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a process may ask of planes and of itself."""

    # Requests per second and plane, and how many may come at once after a pause.
    rate: float
    burst: int
    passes_per_second: float = 1.0
    back_off_cap: timedelta = BACK_OFF_CAP
    # The share of a delay that chance may take away.
    jitter: float = 0.25
    # Failures in a row that may be retried at once (conflicts on a fresh read).
    quick_retries: int = 3
    # Who is held to the rate; nobody named, everybody is.
    identities: frozenset[str] = frozenset()


def request_budget(
    history: History, budget: Budget, *, at_rest_since: datetime | None = None
) -> list[Violation]:
    """O11: the rate per plane, passes per object at rest, and back-off that grows and is capped."""
    found = [*_rate_violations(history, budget), *_back_off_violations(history, budget)]
    if at_rest_since is not None:
        found += _pass_violations(history, budget, at_rest_since)
    return sorted(found, key=lambda violation: violation.at)


def _rate_violations(history: History, budget: Budget) -> Iterator[Violation]:
    """A token bucket per plane and identity, filled at the rate; an empty one is a violation."""
    tokens: dict[tuple[str, str], tuple[float, datetime]] = {}
    for request in sorted(history.of(Request), key=lambda request: request.begun):
        who = (request.address.plane, request.caller.identity)
        if budget.identities and who[1] not in budget.identities:
            continue
        held, since = tokens.get(who, (float(budget.burst), request.begun))
        gained = (request.begun - since).total_seconds() * budget.rate
        held = min(float(budget.burst), held + gained)
        # A tenth of a token forgives rounding of times, not a request.
        if held < 0.9:
            message = f"{who[1]} asks {who[0]} more than {budget.rate:g} times per second"
            yield Violation("O11", request.begun, message)
            held = float(budget.burst)
        tokens[who] = (held - 1.0, request.begun)


def _pass_violations(history: History, budget: Budget, since: datetime) -> Iterator[Violation]:
    last: dict[tuple[str, str], datetime] = {}
    shortest = timedelta(seconds=1.0 / budget.passes_per_second)
    for one in history.of(Pass):
        who = (one.controller, one.key)
        if one.at >= since and who in last and one.at - last[who] < shortest:
            message = f"{one.controller} looked at {one.key} twice within {one.at - last[who]}"
            yield Violation("O11", one.at, message)
        last[who] = one.at


def _back_off_violations(history: History, budget: Budget) -> Iterator[Violation]:
    failures: dict[tuple[str, str], list[datetime]] = {}
    told_at: dict[str, int] = {}  # places in the history: of the last event about a key,
    seen_at: dict[tuple[str, str], int] = {}  # and of the last pass over it
    for place, one in enumerate(history.entries):
        if isinstance(one, Event):
            told_at[f"{one.plane}://{one.kind}/{one.key}"] = place
        if not isinstance(one, Pass):
            continue
        who = (one.controller, one.key)
        is_woken = told_at.get(one.key, -1) > seen_at.get(who, -1)
        seen_at[who] = place
        row = failures.setdefault(who, [])
        if one.outcome in {"done", "waiting"}:
            row.clear()
            continue
        row.append(one.at)
        yield from _judge_delays(one, row, budget, is_woken=is_woken)


def _judge_delays(
    one: Pass, row: list[datetime], budget: Budget, *, is_woken: bool
) -> Iterator[Violation]:
    """The last two delays of a row of failures: growing but for jitter, and never past the cap.

    A pass that a change of its object woke did not wait for any back-off: it may come early.
    """
    if len(row) < 2:
        return
    delay = row[-1] - row[-2]
    who = f"{one.controller} on {one.key}"
    if delay > budget.back_off_cap:
        yield Violation("O11", one.at, f"{who} waited {delay} after a failure, past the cap")
    if is_woken or len(row) < 3 or len(row) - 1 <= budget.quick_retries:
        return
    before = row[-2] - row[-3]
    if delay < before * (1.0 - budget.jitter) and before < budget.back_off_cap:
        message = f"{who} waited {delay} after {before}: back-off shrinks while it fails"
        yield Violation("O11", one.at, message)


def join_violations(violations: Iterable[Violation]) -> str:
    """All of them, a line each, for the message of a failing run."""
    return "\n".join(str(violation) for violation in violations)
