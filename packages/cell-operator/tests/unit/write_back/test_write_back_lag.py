"""How long changes wait for the hub."""

from __future__ import annotations

from datetime import timedelta

from compute_cell_operator.planes import CELL, INSTANCE
from compute_cell_operator.write_back.status_lag import End, StatusLag
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.testing.fakes import FakeClock, FakeMetrics

KEY = ObjectKey(CELL, INSTANCE, "ns", "web-0")
OTHER = ObjectKey(CELL, INSTANCE, "ns", "web-1")
SECOND = timedelta(seconds=1)


class Bench:
    def __init__(self) -> None:
        self.clock, self.measures = FakeClock(), FakeMetrics()
        self.lag = StatusLag(self.clock, self.measures, "write-back")
        self.lag.count(is_on=True)

    @property
    def measured(self) -> list[float]:
        return self.measures.values.get(("compute_writeback_lag_seconds", ()), [])

    def passes(self, end: End, seconds: int = 1) -> None:
        self.lag.begin(KEY)
        self.clock.pass_time(SECOND * seconds)
        self.lag.end(KEY, end)


def test_it_is_measured_from_the_first_change_to_the_acknowledgement() -> None:
    bench = Bench()
    bench.lag.start(KEY)
    bench.clock.pass_time(SECOND)
    bench.lag.start(KEY)
    bench.passes(End.NOT_YET)
    assert bench.lag.oldest == 2 * SECOND
    bench.passes(End.ACKNOWLEDGED)
    assert bench.measured == [3.0]
    assert len(bench.lag) == 0


def test_a_change_during_a_pass_is_for_the_next_one() -> None:
    bench = Bench()
    bench.lag.start(KEY)
    bench.lag.begin(KEY)
    bench.clock.pass_time(SECOND)
    bench.lag.start(KEY)
    bench.clock.pass_time(SECOND)
    bench.lag.end(KEY, End.ACKNOWLEDGED)
    assert bench.measured == [2.0]
    assert bench.lag.oldest == SECOND
    bench.passes(End.ACKNOWLEDGED)
    assert bench.measured == [2.0, 2.0]


def test_what_needs_no_write_is_dropped_and_an_unknown_key_measures_nothing() -> None:
    bench = Bench()
    bench.lag.start(KEY)
    bench.passes(End.NOTHING_TO_DO)
    bench.passes(End.ACKNOWLEDGED)
    assert bench.measured == []


def test_the_oldest_is_shown_and_a_delay_is_reported_once() -> None:
    bench = Bench()
    bench.lag.start(OTHER)
    bench.clock.pass_time(SECOND * 299)
    assert not bench.lag.is_delayed_anew()
    bench.clock.pass_time(SECOND)
    assert [bench.lag.is_delayed_anew() for _ in range(3)] == [True, False, False]
    bench.lag.update_gauges()
    gauge = ("compute_oldest_pending_seconds", (("controller", "write-back"),))
    assert bench.measures.gauges[gauge] == 300
    bench.lag.begin(OTHER)
    bench.lag.end(OTHER, End.ACKNOWLEDGED)
    assert not bench.lag.is_delayed_anew()
    bench.lag.start(OTHER)
    bench.clock.pass_time(SECOND * 300)
    assert bench.lag.is_delayed_anew()


def test_a_process_that_does_not_write_counts_nothing() -> None:
    bench = Bench()
    bench.lag.start(KEY)
    bench.lag.count(is_on=False)
    bench.lag.start(KEY)
    assert len(bench.lag) == 0
