"""Since when a key is in a situation; how long something took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from compute_management_operator.hub.latency import LatencyTracker
from compute_management_operator.hub.metrics import is_deferred_for_hub, is_deferred_for_project
from compute_management_operator.hub.wait_tracker import WaitTracker
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.errors import PlaneGoneError, UnavailableError
from compute_operator_kit.intents.intents import Plan, RequeueAfter
from compute_operator_kit.intents.outcomes import Effect
from compute_operator_kit.testing.fakes import FakeClock, FakeMetrics, a_key

NOW = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
KEY = a_key("web")
SECOND = timedelta(seconds=1)


def waiting(*reasons: str) -> list[Plan]:
    return [Plan(tuple(RequeueAfter(KEY, reason, SECOND) for reason in reasons))]


def test_situation_lasts_from_when_it_was_first_seen() -> None:
    episodes = WaitTracker()
    episodes.note(KEY, waiting("A"), NOW)
    episodes.note(KEY, waiting("A", "B"), LATER)
    assert episodes.of(KEY) == {"A": NOW, "B": LATER}
    assert episodes.count() == {"A": 1, "B": 1}


def test_situation_that_was_over_begins_anew() -> None:
    episodes = WaitTracker()
    episodes.note(KEY, waiting("A"), NOW)
    episodes.note(KEY, [Plan()], NOW)
    assert episodes.of(KEY) == {}
    assert len(episodes) == 0
    episodes.note(KEY, waiting("A"), LATER)
    assert episodes.of(KEY) == {"A": LATER}


def test_outage_ends_and_a_gone_plane_forgets() -> None:
    episodes = WaitTracker()
    other = a_key("other", plane="project-b")
    episodes.note(KEY, waiting("A"), NOW)
    episodes.note(other, waiting("A"), NOW)
    episodes.end(KEY)
    assert episodes.of(KEY) == {}
    episodes.forget(lambda key: key.plane == "project-b")
    assert len(episodes) == 0


def test_stopwatch_measures_from_the_first_change_to_the_write() -> None:
    clock, measures = FakeClock(), FakeMetrics()
    watch = LatencyTracker("seconds", clock, measures)
    watch.start(KEY)
    clock.pass_time(SECOND)
    watch.start(KEY)
    watch.end(KEY, Effect.HELD)
    clock.pass_time(SECOND)
    watch.end(KEY, Effect.WRITTEN)
    watch.end(KEY, Effect.WRITTEN)
    assert measures.values == {("seconds", ()): [2.0]}


def test_stopwatch_that_led_to_nothing_is_dropped() -> None:
    measures = FakeMetrics()
    watch = LatencyTracker("seconds", FakeClock(), measures)
    for key in (KEY, a_key("b")):
        watch.start(key)
    watch.end(KEY, Effect.EQUAL)
    watch.forget(lambda key: key.name == "b")
    assert len(watch) == 0
    assert measures.values == {}


def test_what_a_pass_could_not_do_is_owed_from_the_first_failure_until_it_is_done() -> None:
    clock = FakeClock()
    watch = LatencyTracker("seconds", clock, FakeMetrics())
    watch.start(KEY)
    clock.pass_time(SECOND)
    assert watch.oldest == ZERO
    for _ in range(2):
        watch.note_reconcile(KEY, has_failed=True)
        clock.pass_time(SECOND)
    watch.note_reconcile(a_key("b"), has_failed=True)
    assert watch.oldest == 2 * SECOND
    watch.note_reconcile(KEY, has_failed=False)
    clock.pass_time(SECOND)
    assert watch.oldest == SECOND
    watch.forget(lambda key: key.name == "b")
    assert watch.oldest == ZERO


def test_a_key_under_which_nothing_is_owes_nothing() -> None:
    clock = FakeClock()
    watch = LatencyTracker("seconds", clock, FakeMetrics())
    watch.note_reconcile(KEY, has_failed=True)
    watch.end_key(KEY)
    clock.pass_time(SECOND)
    assert watch.oldest == ZERO


def test_a_plane_that_is_gone_is_owed_nothing() -> None:
    away, gone = (
        kind("Word", "reading", plane="project-a") for kind in (UnavailableError, PlaneGoneError)
    )
    hub = UnavailableError("Word", "reading", plane="@hub")
    assert is_deferred_for_project([away])
    assert not is_deferred_for_project([gone, hub])
    assert is_deferred_for_hub([away, hub])
    assert not is_deferred_for_hub([away, gone])
