"""Oracles over a recorded history: invariants of every run, with or without faults.

O3 eventual stability, O7 field ownership, O9 process hygiene, O11 request budget of
`docs/spec/faults.md` 2. Each is a pure function that returns violations with time and message; an
empty list means success. They only check observable behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from typing_extensions import override

from compute_sim_planes.history import Commit, Event, History, Injected, ReconcileRecord, Request
from compute_sim_planes.oracles.object_changes import derive_changes
from compute_sim_planes.time.clock import LoopReport

SETTLE: Final = timedelta(seconds=60)
QUIET: Final = timedelta(minutes=10)
BACK_OFF_CAP: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of an oracle."""

    oracle: str
    at: datetime
    message: str

    @override
    def __str__(self) -> str:
        return f"{self.oracle} at {self.at.isoformat()}: {self.message}"


@dataclass(frozen=True, slots=True)
class Stability:
    """When a run must be at rest. `settle` is 60 s or twice the longest requeue delay."""

    settle: timedelta = SETTLE
    quiet: timedelta = QUIET
    # Kinds that are written periodically by design.
    ignored_kinds: frozenset[str] = frozenset({"Lease"})


def last_fault(history: History) -> datetime:
    """The time of the last injected fault; without one the start of the run."""
    return max((entry.at for entry in history.of(Injected)), default=history.begun)


def eventual_stability(
    history: History, *, since: datetime, rules: Stability | None = None
) -> list[Violation]:
    """O3: after `since` and the settle time, no write on any plane during the quiet time."""
    rules = rules or Stability()
    rest_begins, rest_ends = since + rules.settle, since + rules.settle + rules.quiet
    violations = [
        Violation("O3", at, message)
        for at, message in _writes(history, rules.ignored_kinds)
        if rest_begins < at <= rest_ends
    ]
    if history.now < rest_ends:
        missing = rest_ends - history.now
        message = f"the run ended {missing} before its rest could be seen"
        violations.append(Violation("O3", history.now, message))
    return violations


def _writes(history: History, ignored_kinds: frozenset[str]) -> Iterator[tuple[datetime, str]]:
    for entry in history.entries:
        if isinstance(entry, Request) and entry.address.is_write:
            where = entry.address
            if where.kind not in ignored_kinds and where.resource != "leases":
                writer = entry.caller.user_agent or entry.caller.identity
                shown = f"{writer} sent {where.verb} {where.kind or where.resource} {where.key}"
                yield entry.begun, f"{shown} to {where.plane} ({entry.status})"
        elif (
            isinstance(entry, Commit) and entry.request is None and entry.kind not in ignored_kinds
        ):
            yield entry.at, f"{entry.plane} itself changed {entry.kind} {entry.key}"


Owns = Callable[[str], bool]


def owns_nothing(name: str) -> bool:
    del name
    return False


def owns_names(*names: str) -> Owns:
    """Exactly these names; one that ends in `*` matches by prefix."""
    exact = frozenset(name for name in names if not name.endswith("*"))
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return lambda name: name in exact or (bool(prefixes) and name.startswith(prefixes))


@dataclass(frozen=True, slots=True)
class FieldOwnership:
    """What one writer may change on existing objects of one kind."""

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


# The ownership of a request's writer for a commit; None: the writer is not checked.
OwnershipOf = Callable[[Request, Commit], FieldOwnership | None]


def field_ownership(history: History, ownership_of: OwnershipOf) -> list[Violation]:
    """O7: every write changes only fields that its writer owns."""
    violations: list[Violation] = []
    for request in history.of(Request):
        for commit in request.commits:
            owned = ownership_of(request, commit)
            # Creation and deletion of whole objects are checked by O1 and O4.
            if owned is None or not commit.before or not commit.after:
                continue
            for change in derive_changes(commit.before, commit.after):
                if not owned.owner_of(change.part)(change.name):
                    writer = request.caller.user_agent or request.caller.identity
                    message = (
                        f"{writer} {change.verb} {change.part} {change.name!r} of {commit.kind} "
                        f"{commit.key} on {commit.plane}"
                    )
                    violations.append(Violation("O7", commit.at, message))
    return violations


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """Facts about a process at its end that are not in the history."""

    open_spans: Sequence[str] = ()
    error_lines: Sequence[str] = ()
    # Lines at ERROR are a violation only where no fault explains them.
    is_reference_run: bool = False


def process_hygiene(
    history: History, report: LoopReport, facts: ProcessFacts | None = None
) -> list[Violation]:
    """O9: no unhandled exception, and no task, response or span left at the end."""
    facts = facts or ProcessFacts()
    left = [
        *(f"unhandled: {text}" for text in report.unhandled),
        *(f"a task is left: {text}" for text in report.pending),
        *(
            f"an answer is left open: {address.verb} {address.resource} on {address.plane}"
            for address in history.open_responses.values()
        ),
        *(f"a span is left open: {name}" for name in facts.open_spans),
    ]
    if facts.is_reference_run:
        left += [f"logged at ERROR without a fault: {line}" for line in facts.error_lines]
    return [Violation("O9", history.now, text) for text in left]


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on requests and reconciles of a process."""

    # Requests per second and plane, and how many may come at once after a pause.
    rate: float
    burst: int
    reconciles_per_second: float = 1.0
    back_off_cap: timedelta = BACK_OFF_CAP
    # The fraction by which jitter may shorten a delay.
    jitter: float = 0.25
    # Consecutive failures that may be retried at once (conflicts on a live read).
    quick_retries: int = 3
    # The identities that are checked; all if empty.
    identities: frozenset[str] = frozenset()


def request_budget(
    history: History, budget: Budget, *, at_rest_since: datetime | None = None
) -> list[Violation]:
    """O11: request rate per plane, reconciles per object at rest, growing and capped back-off."""
    violations = [*_rate_violations(history, budget), *_back_off_violations(history, budget)]
    if at_rest_since is not None:
        violations += _reconcile_violations(history, budget, at_rest_since)
    return sorted(violations, key=lambda violation: violation.at)


def _rate_violations(history: History, budget: Budget) -> Iterator[Violation]:
    """A token bucket per plane and identity; a request without a token is a violation."""
    tokens: dict[tuple[str, str], tuple[float, datetime]] = {}
    for request in sorted(history.of(Request), key=lambda request: request.begun):
        bucket = (request.address.plane, request.caller.identity)
        if budget.identities and bucket[1] not in budget.identities:
            continue
        held, since = tokens.get(bucket, (float(budget.burst), request.begun))
        gained = (request.begun - since).total_seconds() * budget.rate
        held = min(float(budget.burst), held + gained)
        # Tolerates rounding of times, but no additional request.
        if held < 0.9:
            message = f"{bucket[1]} asks {bucket[0]} more than {budget.rate:g} times per second"
            yield Violation("O11", request.begun, message)
            held = float(budget.burst)
        tokens[bucket] = (held - 1.0, request.begun)


def _reconcile_violations(history: History, budget: Budget, since: datetime) -> Iterator[Violation]:
    last: dict[tuple[str, str], datetime] = {}
    shortest = timedelta(seconds=1.0 / budget.reconciles_per_second)
    for one in history.of(ReconcileRecord):
        key = (one.controller, one.key)
        if one.at >= since and key in last and one.at - last[key] < shortest:
            message = f"{one.controller} looked at {one.key} twice within {one.at - last[key]}"
            yield Violation("O11", one.at, message)
        last[key] = one.at


def _back_off_violations(history: History, budget: Budget) -> Iterator[Violation]:
    failures: dict[tuple[str, str], list[datetime]] = {}
    event_at: dict[str, int] = {}  # positions in the history: of the last event about a key,
    reconciled_at: dict[tuple[str, str], int] = {}  # and of its last reconcile
    for position, one in enumerate(history.entries):
        if isinstance(one, Event):
            event_at[f"{one.plane}://{one.kind}/{one.key}"] = position
        if not isinstance(one, ReconcileRecord):
            continue
        key = (one.controller, one.key)
        is_triggered = event_at.get(one.key, -1) > reconciled_at.get(key, -1)
        reconciled_at[key] = position
        row = failures.setdefault(key, [])
        if one.outcome in {"done", "waiting"}:
            row.clear()
            continue
        row.append(one.at)
        yield from _check_delays(one, row, budget, is_triggered=is_triggered)


def _check_delays(
    one: ReconcileRecord, row: list[datetime], budget: Budget, *, is_triggered: bool
) -> Iterator[Violation]:
    """The last two delays of consecutive failures: growing except for jitter, and never above the
    cap.

    A reconcile that a change of its object triggered may come before its back-off is over.
    """
    if len(row) < 2:
        return
    delay = row[-1] - row[-2]
    shown = f"{one.controller} on {one.key}"
    if delay > budget.back_off_cap:
        yield Violation("O11", one.at, f"{shown} waited {delay} after a failure, past the cap")
    if is_triggered or len(row) < 3 or len(row) - 1 <= budget.quick_retries:
        return
    before = row[-2] - row[-3]
    if delay < before * (1.0 - budget.jitter) and before < budget.back_off_cap:
        message = f"{shown} waited {delay} after {before}: back-off shrinks while it fails"
        yield Violation("O11", one.at, message)


def join_violations(violations: Iterable[Violation]) -> str:
    """All violations, one per line, for the message of a failing run."""
    return "\n".join(str(violation) for violation in violations)
