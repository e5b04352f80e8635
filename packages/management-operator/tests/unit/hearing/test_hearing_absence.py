"""Cells without a Cluster: after a minute nothing is heard of them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_management_operator.hub.hearing.absence import ABSENT_FOR, Absences, note_absent

START = timedelta(seconds=100)


@pytest.mark.spec("DS-12")
def test_a_cluster_that_is_absent_for_a_minute_is_gone() -> None:
    absent = note_absent(Absences(), {"ord"}, START)
    assert absent.gone == frozenset()
    almost = note_absent(absent, {"ord"}, START + ABSENT_FOR - timedelta(seconds=1))
    assert almost.gone == frozenset()
    assert note_absent(almost, {"ord"}, START + ABSENT_FOR).gone == {"ord"}


@pytest.mark.spec("DS-12")
def test_a_cluster_that_returns_is_counted_anew() -> None:
    absent = note_absent(Absences(), {"ord"}, START)
    present = note_absent(absent, frozenset(), START + timedelta(seconds=30))
    again = note_absent(present, {"ord"}, START + ABSENT_FOR)
    assert again.gone == frozenset()
