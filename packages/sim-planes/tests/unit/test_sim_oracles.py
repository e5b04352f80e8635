from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from compute_sim_planes.history import (
    Caller,
    Commit,
    Event,
    History,
    HistoryEntry,
    Injected,
    ReconcileRecord,
    Request,
)
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.oracles import invariants
from compute_sim_planes.oracles.invariants import (
    Budget,
    FieldOwnership,
    ProcessFacts,
    eventual_stability,
    field_ownership,
    last_fault,
    owns_names,
    process_hygiene,
    request_budget,
)
from compute_sim_planes.request_address import Address
from compute_sim_planes.time.clock import LoopReport

START = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
US = Caller("management", "compute-management/1")


class HandClock:
    """A clock that a test sets."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def a_history(*entries: HistoryEntry, ends: float = 3600) -> History:
    clock = HandClock(START)
    history = History(clock)
    history.entries.extend(entries)
    clock.moment = after(ends)
    return history


def a_request(
    at: float,
    verb: str = "update",
    *,
    kind: str = "Thing",
    commits: tuple[Commit, ...] = (),
    caller: Caller = US,
    plane: str = "hub",
) -> Request:
    resource = f"{kind.lower()}s"
    address = Address(plane, verb, "example.com", resource, kind, "n", "a")
    return Request(1, after(at), after(at), caller, address, 200, "", commits)


def a_commit(
    at: float, before: JsonObject | None = None, after_: JsonObject | None = None
) -> Commit:
    def raw(document: JsonObject | None) -> bytes:
        return b"" if document is None else orjson.dumps(document)

    return Commit(
        after(at), "hub", "MODIFIED", "Thing", "n/a", 7, "us", raw(before), raw(after_), None
    )


def messages(violations: list[invariants.Violation]) -> list[str]:
    return [violation.message for violation in violations]


def test_a_run_that_comes_to_rest_is_stable() -> None:
    history = a_history(
        a_request(30),
        a_request(65, "get"),
        a_request(100, "watch"),
        a_request(200, kind="Lease"),
        a_request(700, "update"),
    )

    assert eventual_stability(history, since=START) == []


def test_a_write_after_the_time_to_settle_is_a_violation() -> None:
    history = a_history(a_request(61))

    (violation,) = eventual_stability(history, since=START)

    assert str(violation) == (
        "O3 at 2026-06-20T09:01:01+00:00: compute-management/1 sent update Thing n/a to hub (200)"
    )


def test_what_a_plane_still_does_by_itself_counts_too() -> None:
    (violation,) = eventual_stability(a_history(a_commit(100)), since=START)

    assert violation.message == "hub itself changed Thing n/a"


def test_a_rest_that_was_not_observed_does_not_count() -> None:
    (violation,) = eventual_stability(a_history(ends=600), since=START)

    assert violation.message == "the run ended 0:01:00 before its rest could be seen"


def test_rest_is_counted_from_the_last_fault() -> None:
    history = a_history(
        Injected(after(100), "C4", "hub"), a_request(150), Injected(after(120), "C4", "hub")
    )

    assert last_fault(history) == after(120)
    assert last_fault(a_history()) == START
    assert eventual_stability(history, since=last_fault(history)) == []


EXISTING: JsonObject = {
    "metadata": {
        "labels": {"ours.io/a": "1", "theirs": "1"},
        "annotations": {"theirs": "1"},
        "finalizers": ["theirs.io/x"],
    },
    "spec": {"size": 1},
    "status": {"phase": "A", "conditions": [{"type": "Programmed", "status": "True"}]},
}


def ours(request: Request, commit: Commit) -> FieldOwnership | None:
    del commit
    if request.caller is not US:
        return None
    return FieldOwnership(
        labels=owns_names("ours.io/*"),
        annotations=owns_names("ours.io/note"),
        finalizers=owns_names("ours.io/x"),
        conditions=owns_names("Ready"),
        spec=owns_names("gates"),
    )


def changed(*path: str, to: object) -> JsonObject:
    document: JsonObject = orjson.loads(orjson.dumps(EXISTING))
    inner = document
    for step in path[:-1]:
        node = inner.setdefault(step, {})
        assert isinstance(node, dict)
        inner = node
    if to is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = orjson.loads(orjson.dumps(to))
    return document


def ownership_violations(
    after_: JsonObject | None, before: JsonObject | None = EXISTING, caller: Caller = US
) -> list[str]:
    request = a_request(1, commits=(a_commit(1, before, after_),), caller=caller)
    return messages(field_ownership(a_history(request), ours))


@pytest.mark.parametrize(
    "after_",
    [
        EXISTING,
        changed("metadata", "labels", "ours.io/a", to="2"),
        changed("metadata", "labels", "ours.io/a", to=None),
        changed("metadata", "annotations", "ours.io/note", to="n"),
        changed("metadata", "finalizers", to=["theirs.io/x", "ours.io/x"]),
        changed("spec", "gates", to=[]),
        changed(
            "status",
            "conditions",
            to=[{"type": "Ready", "status": "True"}, {"type": "Programmed", "status": "True"}],
        ),
    ],
)
def test_what_is_ours_we_may_change(after_: JsonObject) -> None:
    assert ownership_violations(after_) == []


@pytest.mark.parametrize(
    ("after_", "message"),
    [
        (changed("metadata", "labels", "theirs", to="2"), "changed label 'theirs'"),
        (changed("metadata", "labels", "theirs", to=None), "removed label 'theirs'"),
        (changed("metadata", "annotations", "other", to="2"), "added annotation 'other'"),
        (changed("metadata", "finalizers", to=[]), "removed finalizer 'theirs.io/x'"),
        (changed("status", "phase", to="B"), "changed status 'phase'"),
        (changed("spec", "size", to=2), "changed spec 'size'"),
        (changed("status", "conditions", to=[]), "removed condition 'Programmed'"),
        (
            changed(
                "status",
                "conditions",
                to=[{"type": "Programmed", "status": "True", "lastTransitionTime": "t"}],
            ),
            "changed condition 'Programmed'",
        ),
    ],
)
@pytest.mark.fault("C2")
def test_what_is_not_ours_we_may_not_change(after_: JsonObject, message: str) -> None:
    assert ownership_violations(after_) == [f"compute-management/1 {message} of Thing n/a on hub"]


def test_others_and_whole_objects_are_not_judged() -> None:
    foreign = changed("metadata", "labels", "theirs", to="2")

    assert ownership_violations(foreign, caller=Caller("provider")) == []
    assert ownership_violations(EXISTING, before=None) == []
    assert ownership_violations(None) == []


def test_a_clean_process_leaves_nothing() -> None:
    assert process_hygiene(a_history(), LoopReport()) == []


def test_everything_a_process_leaves_is_told() -> None:
    history = a_history()
    history.open_responses[3] = Address("hub", "watch", resource="things")
    report = LoopReport(unhandled=["ValueError"], pending=["worker at x.py:1"])
    facts = ProcessFacts(open_spans=["pass"], error_lines=["oh no"], is_reference_run=True)

    assert messages(process_hygiene(history, report, facts)) == [
        "unhandled: ValueError",
        "a task is left: worker at x.py:1",
        "an answer is left open: watch things on hub",
        "a span is left open: pass",
        "logged at ERROR without a fault: oh no",
    ]


def test_error_lines_are_no_finding_where_a_fault_explains_them() -> None:
    assert process_hygiene(a_history(), LoopReport(), ProcessFacts(error_lines=["x"])) == []


BUDGET = Budget(rate=10, burst=20)


def test_requests_within_the_rate_pass_and_a_pause_fills_the_bucket() -> None:
    burst = [a_request(0) for _ in range(20)]
    steady = [a_request(0.1 * n, "get") for n in range(1, 100)]
    again = [a_request(30) for _ in range(20)]

    assert request_budget(a_history(*burst, *steady, *again), BUDGET) == []


@pytest.mark.fault("C3")
def test_requests_past_the_rate_are_a_violation_of_their_plane_alone() -> None:
    flood = [a_request(0, plane="hub") for _ in range(21)]
    calm = [a_request(0, plane="cell") for _ in range(20)]

    assert messages(request_budget(a_history(*flood, *calm), BUDGET)) == [
        "management asks hub more than 10 times per second"
    ]


def test_only_the_named_identities_are_checked_for_the_rate() -> None:
    flood = a_history(*(a_request(0) for _ in range(21)))
    others = replace(BUDGET, identities=frozenset({"dfw-1"}))
    ours = replace(BUDGET, identities=frozenset({"management"}))

    assert request_budget(flood, others) == []
    assert len(request_budget(flood, ours)) == 1


def test_a_pause_fills_the_bucket_and_no_more() -> None:
    (violation,) = request_budget(
        a_history(a_request(0), *(a_request(600) for _ in range(21))), BUDGET
    )

    assert violation.at == after(600)


def passes(*moments: float, outcome: str = "done") -> list[ReconcileRecord]:
    return [ReconcileRecord(after(at), "federation", "n/a", outcome) for at in moments]


def test_at_rest_an_object_is_looked_at_once_a_second_at_most() -> None:
    history = a_history(*passes(0, 0.1, 0.2, 100, 101, 101.5))

    (violation,) = request_budget(history, BUDGET, at_rest_since=after(50))

    assert violation.at == after(101.5)
    assert request_budget(history, BUDGET) == []


@pytest.mark.fault("C4")
def test_back_off_that_grows_to_its_cap_passes() -> None:
    moments = [0.0, 0.5, 1.4, 3.1, 6.9, 14.5, 29, 60, 119, 178, 225]

    assert request_budget(a_history(*passes(*moments, outcome="UnavailableError")), BUDGET) == []


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        ([0, 70], "waited 0:01:10 after a failure, past the cap"),
        ([0, 1, 3, 7, 15, 16], "waited 0:00:01 after 0:00:08: back-off shrinks while it fails"),
    ],
)
def test_back_off_that_shrinks_or_passes_its_cap_is_a_violation(
    moments: list[float], message: str
) -> None:
    history = a_history(*passes(*moments, outcome="UnavailableError"))

    assert messages(request_budget(history, BUDGET)) == [f"federation on n/a {message}"]


def an_event(at: float, key: str = "default/web", kind: str = "Workload") -> Event:
    return Event(after(at), "alpha", US, "MODIFIED", kind, key, "7")


@pytest.mark.parametrize(
    ("event", "is_excused"),
    [
        (an_event(15.5), True),
        (an_event(14), False),  # before the failed reconcile: did not trigger this one
        (an_event(15.5, key="default/api"), False),
        (an_event(15.5, kind="Instance"), False),
    ],
)
def test_a_pass_woken_by_a_change_of_its_object_may_come_early(
    event: Event, *, is_excused: bool
) -> None:
    moments = (0, 1, 3, 7, 15, 16)
    failed: list[HistoryEntry] = [
        ReconcileRecord(after(at), "workload", "alpha://Workload/default/web", "UnavailableError")
        for at in moments
    ]
    history = a_history(*sorted([*failed, event], key=lambda entry: entry.at))

    assert (request_budget(history, BUDGET) == []) is is_excused


def test_conflicts_may_be_retried_at_once_a_few_times() -> None:
    moments = [0.0, 0.05, 0.06, 0.1, 0.6, 1.5]

    assert request_budget(a_history(*passes(*moments, outcome="ConflictError")), BUDGET) == []


def test_a_success_begins_back_off_anew() -> None:
    failed = passes(0, 1, 3, 7, 15, outcome="X")
    done, again = passes(16), passes(17, 17.5, 18.5, outcome="X")

    assert request_budget(a_history(*failed, *done, *again), BUDGET) == []


def test_violations_are_joined_one_per_line() -> None:
    violations = eventual_stability(a_history(a_request(61), a_request(62)), since=START)

    assert len(invariants.join_violations(violations).splitlines()) == 2
