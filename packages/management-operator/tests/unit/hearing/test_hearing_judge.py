"""Which cells are dark: each row of the table, and each condition of the verdict left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

import pytest

from compute_management_operator.hub.hearing.judge import (
    LONGEST_PATIENCE,
    CellCluster,
    CellLease,
    CellRecord,
    CellState,
    Look,
    Order,
    Records,
    find_suspects,
    judge,
    note,
    without_times,
)
from compute_management_operator.hub.hearing.verdicts import (
    Audibility,
    Hearing,
    changed_cells,
    derive_hearing,
)

AFTER = timedelta(seconds=60)
STEP = timedelta(seconds=5)
CELLS = ("dfw", "ord", "lhr", "ams")


@dataclass
class History:
    """Looks at a hub, one after the other."""

    cells: tuple[str, ...] = CELLS
    after: timedelta = AFTER
    now: timedelta = timedelta(seconds=1000)
    records: Records = field(default_factory=Records)
    silent: frozenset[str] = frozenset()
    unready: frozenset[str] = frozenset()
    orders: Mapping[str, Order] = field(default_factory=dict[str, Order])
    without_lease: frozenset[str] = frozenset()
    duration: timedelta = timedelta(seconds=60)
    version: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    is_denied: bool = False  # a fresh read shows each Cluster as Ready

    def look(self) -> Look:
        self.version += 1
        for cell in self.cells:
            if cell not in self.silent or cell not in self.versions:
                self.versions[cell] = str(self.version)
        leases = {
            cell: CellLease(version, self.duration)
            for cell, version in self.versions.items()
            if cell not in self.without_lease
        }
        clusters = {
            cell: CellCluster(cell not in self.unready, self.orders.get(cell, Order.NONE))
            for cell in self.cells
        }
        return Look(self.now, self.now, leases, clusters)

    def step(self, delay: timedelta = STEP) -> None:
        self.now += delay
        look = self.look()
        self.records = note(self.records, look, self.after)
        suspects = find_suspects(self.records, look, self.after)
        confirmed = frozenset[str]() if self.is_denied else suspects
        self.records = judge(self.records, look, self.after, confirmed)

    def run(self, span: timedelta) -> None:
        end = self.now + span
        while self.now < end:
            self.step()

    def kill(self, *cells: str) -> None:
        self.silent, self.unready = frozenset(cells), frozenset(cells)

    @property
    def states(self) -> dict[str, CellState]:
        return {name: record.state for name, record in self.records.cells.items()}

    @property
    def dark(self) -> frozenset[str]:
        return derive_hearing(self.records).dark


def a_history(**changes: object) -> History:
    """All cells are heard."""
    history = History(**changes)  # type: ignore[arg-type]
    history.run(timedelta(seconds=60))
    assert not history.dark
    return history


@pytest.mark.spec("DS-01")
@pytest.mark.parametrize(
    ("silent", "unready", "state"),
    [
        (False, False, CellState.HEARD),
        (False, True, CellState.UNDELIVERED),
        (True, False, CellState.SILENT),
        (True, True, CellState.DARK),
    ],
)
def test_two_witnesses_decide(silent: bool, unready: bool, state: CellState) -> None:
    history = a_history()
    history.silent = frozenset({"dfw"} if silent else ())
    history.unready = frozenset({"dfw"} if unready else ())
    history.run(timedelta(seconds=75))
    assert history.states == dict.fromkeys(CELLS, CellState.HEARD) | {"dfw": state}


@pytest.mark.spec("DS-10")
def test_a_cell_without_a_lease_is_never_dark() -> None:
    history = a_history(without_lease=frozenset({"dfw"}))
    history.kill("dfw")
    history.run(timedelta(minutes=20))
    assert history.states["dfw"] is CellState.UNMONITORED
    assert history.records.cells["dfw"].is_dark is None


@pytest.mark.spec("DS-01")
def test_a_lease_that_was_never_renewed_is_no_witness() -> None:
    clusters = {"dfw": CellCluster(is_ready=False)}
    records = Records()
    for seconds in range(0, 300, 5):
        moment = timedelta(seconds=seconds)
        look = Look(moment, moment, {"dfw": CellLease("1", is_renewed=False)}, clusters)
        records = note(records, look, AFTER)
        assert not find_suspects(records, look, AFTER)
        records = judge(records, look, AFTER, {"dfw"})
    assert records.cells["dfw"].state is CellState.UNMONITORED


@pytest.mark.spec("DS-01")
def test_a_cell_is_dark_within_75_seconds_and_not_before_its_patience() -> None:
    history = a_history()
    history.kill("dfw")
    history.run(timedelta(seconds=55))
    assert not history.dark
    history.run(timedelta(seconds=20))
    assert history.dark == {"dfw"}


@pytest.mark.spec("DS-01")
def test_the_duration_of_a_lease_makes_patience_longer_up_to_ten_minutes() -> None:
    history = a_history(duration=timedelta(days=1))
    history.kill("dfw")
    history.run(LONGEST_PATIENCE - STEP)
    assert not history.dark
    history.run(2 * STEP)
    assert history.dark == {"dfw"}


@pytest.mark.spec("DS-01")
def test_a_fresh_read_that_shows_the_cluster_as_ready_prevents_the_verdict() -> None:
    history = a_history(is_denied=True)
    history.kill("dfw")
    history.run(timedelta(minutes=10))
    assert history.states["dfw"] is CellState.SILENT


@pytest.mark.spec("DS-01")
def test_a_process_that_was_frozen_counts_anew() -> None:
    history = a_history()
    history.kill("dfw")
    history.step()
    history.step(timedelta(minutes=5))
    assert not history.dark
    history.run(timedelta(seconds=65))
    assert history.dark == {"dfw"}


@pytest.mark.spec("DS-01")
def test_an_answer_that_is_read_late_counts_from_when_it_was_sent() -> None:
    history = a_history()
    history.silent = frozenset({"dfw"})
    history.unready = frozenset({"dfw"})
    look = history.look()
    late = Look(history.now + STEP, history.now + timedelta(minutes=5), look.leases, look.clusters)
    assert not find_suspects(note(history.records, late, AFTER), late, AFTER)


@pytest.mark.spec("DS-01")
def test_a_failed_read_begins_the_count_anew_and_takes_no_verdict_back() -> None:
    history = a_history()
    history.kill("dfw")
    history.run(timedelta(seconds=50))
    history.records = without_times(history.records)
    history.run(timedelta(seconds=50))
    assert not history.dark
    history.run(timedelta(seconds=20))
    history.records = without_times(history.records)
    assert history.dark == {"dfw"}
    history.step()
    assert history.dark == {"dfw"}


@pytest.mark.spec("DS-01")
@pytest.mark.parametrize(
    ("total", "killed", "withheld"),
    [(1, 1, False), (2, 1, False), (2, 2, True), (4, 2, False), (4, 3, True), (200, 200, True)],
)
def test_too_many_at_once_are_withheld(total: int, killed: int, withheld: bool) -> None:
    cells = tuple(f"cell-{number}" for number in range(total))
    history = a_history(cells=cells)
    history.kill(*cells[:killed])
    history.run(timedelta(seconds=75))
    state = CellState.WITHHELD if withheld else CellState.DARK
    assert {history.states[cell] for cell in cells[:killed]} == {state}


@pytest.mark.spec("DS-01")
def test_sites_lost_at_once_are_withheld_though_their_renewals_were_spread() -> None:
    """Of ten cells, one after the other is missed over 15 s; a literal count would darken five."""
    cells = tuple(f"cell-{number}" for number in range(10))
    history = a_history(cells=cells)
    history.unready = frozenset(cells)
    for number in range(0, 10, 3):
        history.silent = frozenset(cells[: number + 3])
        history.step()
    history.silent = frozenset(cells)
    history.run(timedelta(seconds=120))
    assert not history.dark
    assert set(history.states.values()) == {CellState.WITHHELD}


@pytest.mark.spec("DS-01")
def test_a_withheld_verdict_is_given_when_the_half_is_heard_again() -> None:
    history = a_history()
    history.kill("dfw", "ord", "lhr")
    history.run(timedelta(minutes=5))
    assert not history.dark
    history.kill("dfw", "ord")
    history.run(timedelta(seconds=10))
    assert history.dark == {"dfw", "ord"}


@pytest.mark.spec("DS-01")
def test_a_second_wave_is_withheld_and_the_first_stays_dark() -> None:
    history = a_history()
    history.kill("dfw")
    history.run(timedelta(seconds=75))
    history.kill(*CELLS)
    history.run(timedelta(minutes=5))
    assert history.dark == {"dfw"}
    assert history.states["ord"] is CellState.WITHHELD


@pytest.mark.spec("DS-01")
def test_a_dark_cell_returns_after_two_renewals_and_ten_seconds_of_ready() -> None:
    history = a_history()
    history.kill("dfw")
    history.run(timedelta(seconds=75))
    history.silent = frozenset()
    history.run(timedelta(minutes=5))
    assert history.dark == {"dfw"}, "Karmada does not reach it yet"
    history.unready = frozenset()
    history.run(timedelta(seconds=10))
    assert history.dark == {"dfw"}
    history.step()
    assert history.states["dfw"] is CellState.HEARD


@pytest.mark.spec("DS-01")
def test_one_renewal_is_not_enough_to_return() -> None:
    history = a_history()
    history.kill("dfw")
    history.run(timedelta(seconds=75))
    history.silent = history.unready = frozenset()
    history.step()
    history.silent = frozenset({"dfw"})
    history.run(timedelta(minutes=5))
    assert history.dark == {"dfw"}


@pytest.mark.spec("DS-01")
def test_a_cell_that_flaps_needs_five_minutes_of_renewals() -> None:
    history = a_history()
    for _ in range(3):
        history.silent = history.unready = frozenset()
        history.run(timedelta(seconds=60))
        assert not history.dark
        history.kill("dfw")
        history.run(timedelta(seconds=75))
        assert history.dark == {"dfw"}
    history.silent = history.unready = frozenset()
    history.run(timedelta(minutes=5))
    assert history.dark == {"dfw"}
    history.run(timedelta(seconds=15))
    assert not history.dark


@pytest.mark.spec("DS-11")
def test_a_person_orders_darkness_and_its_end() -> None:
    history = a_history(orders={"dfw": Order.NONE})
    history.orders = dict.fromkeys(CELLS, Order.DARK)
    history.step()
    assert history.dark == frozenset(CELLS), "the rule of the half does not bind a person"
    history.orders = {}
    history.step()
    assert not history.dark


@pytest.mark.spec("DS-11")
def test_an_order_on_a_cell_without_a_lease_ends_with_its_annotation() -> None:
    history = a_history(without_lease=frozenset({"dfw"}))
    history.orders = {"dfw": Order.DARK}
    history.step()
    assert history.dark == {"dfw"}
    history.orders = {}
    history.run(timedelta(seconds=30))
    assert not history.dark
    assert "dfw" in derive_hearing(history.records).heard


@pytest.mark.spec("DS-11")
def test_a_person_forbids_darkness() -> None:
    history = a_history(orders={"dfw": Order.NEVER_DARK})
    history.kill("dfw")
    history.run(timedelta(minutes=5))
    assert not history.dark
    history.orders = {}
    history.step()
    assert history.dark == {"dfw"}


@pytest.mark.spec("DS-10")
def test_zero_switches_the_verdict_off() -> None:
    history = a_history(after=timedelta())
    history.kill("dfw")
    history.run(timedelta(minutes=20))
    assert not history.dark
    assert derive_hearing(history.records).heard == frozenset(CELLS)


@pytest.mark.spec("DS-05")
def test_a_new_process_has_no_verdict_until_it_has_heard_or_waited() -> None:
    history = a_history()
    history.kill("dfw")
    history.run(timedelta(seconds=75))
    history.records = Records()
    history.step()
    assert {record.is_dark for record in history.records.cells.values()} == {None}
    history.run(timedelta(seconds=30))
    hearing = derive_hearing(history.records)
    assert hearing == Hearing(heard=frozenset(CELLS) - {"dfw"})
    history.run(timedelta(seconds=40))
    assert history.dark == {"dfw"}


def test_a_cell_without_a_cluster_has_no_record() -> None:
    history = a_history()
    history.cells = CELLS[1:]
    history.step()
    assert "dfw" not in history.records.cells


@pytest.mark.spec("DS-01")
def test_random_losses_of_renewals_darken_no_cell_that_karmada_reaches() -> None:
    history, chance = a_history(), Random(28)  # noqa: S311
    for _ in range(500):
        history.silent = frozenset(cell for cell in CELLS if chance.random() < 0.95)
        history.step()
        assert not history.dark


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((), Audibility.HEARD),
        (("dfw",), Audibility.DARK),
        (("dfw", "ord"), Audibility.PARTLY),
        (("ord",), Audibility.HEARD),
        (("ord", "new"), Audibility.UNDECIDED),
        (("dfw", "new"), Audibility.PARTLY),
    ],
)
def test_the_cells_of_a_deployment(cells: tuple[str, ...], expected: Audibility) -> None:
    hearing = Hearing(heard=frozenset({"ord"}), dark=frozenset({"dfw"}))
    assert hearing.judge_cells(cells) is expected


def test_an_instance_of_a_cluster_that_is_gone_is_not_heard() -> None:
    hearing = Hearing(gone=frozenset({"dfw"}))
    assert hearing.judge_instance("dfw") is Audibility.DARK
    assert hearing.judge_cells(("dfw",)) is Audibility.UNDECIDED


def test_cells_with_another_verdict() -> None:
    before = Hearing(heard=frozenset({"a", "b"}), dark=frozenset({"c"}))
    after = Hearing(heard=frozenset({"a", "c"}), dark=frozenset({"b"}))
    assert changed_cells(before, after) == {"b", "c"}
    assert CellRecord().is_dark is None
