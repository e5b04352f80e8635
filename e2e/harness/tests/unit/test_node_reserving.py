from __future__ import annotations

from pathlib import Path

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.node.reserving import reserve
from e2e.harness.planes.node_slot import COUNT, NodeSlot


class Sweeper:
    """Records the slots that it was called with."""

    def __init__(self) -> None:
        self.swept: list[int] = []

    def __call__(self, slot: NodeSlot) -> None:
        self.swept.append(slot.number)


def test_two_runs_share_no_slot(tmp_path: Path) -> None:
    first = reserve(3, locks=tmp_path, sweep=Sweeper())
    second = reserve(2, locks=tmp_path, sweep=Sweeper())
    numbers = [held.slot.number for held in (*first, *second)]
    assert numbers == [0, 1, 2, 3, 4]
    for held in (*first, *second):
        held.release()


def test_slots_of_a_run_that_goes_on_are_left_alone(tmp_path: Path) -> None:
    taken, sweeper = reserve(2, locks=tmp_path, sweep=Sweeper()), Sweeper()
    assert reserve(0, locks=tmp_path, sweep=sweeper) == []
    assert sweeper.swept == [*range(2, COUNT)]
    for held in taken:
        held.release()


def test_what_is_let_go_of_leaves_no_file(tmp_path: Path) -> None:
    (held,) = reserve(1, locks=tmp_path, sweep=Sweeper())
    held.record_owner(tmp_path / "run")
    held.release()
    assert [*tmp_path.iterdir()] == []


def test_the_folder_of_a_crashed_run_goes_with_the_next(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    locks = tmp_path / "locks"
    (crashed,) = reserve(1, locks=locks, sweep=Sweeper())
    crashed.record_owner(run)
    crashed.file.close()  # as the kernel does when a process ends
    (held,) = reserve(1, locks=locks, sweep=Sweeper())
    assert held.slot == crashed.slot
    assert not run.exists()
    held.release()


def test_without_a_free_slot_reserving_fails_and_keeps_nothing(tmp_path: Path) -> None:
    taken = reserve(COUNT - 1, locks=tmp_path, sweep=Sweeper())
    with pytest.raises(PlanesError, match="room for 2 nodes"):
        reserve(2, locks=tmp_path, sweep=Sweeper())
    (last,) = reserve(1, locks=tmp_path, sweep=Sweeper())
    for held in (*taken, last):
        held.release()
