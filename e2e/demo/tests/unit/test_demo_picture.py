"""Tables and bars fit every width and show their values."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.demo.picture import (
    NARROWEST,
    CityRow,
    Progress,
    fit,
    render_bar,
    render_table,
    render_text,
)


def a_row(city: str = "DFW", *, desired: int = 2, ready: int = 2, updated: int = 2) -> CityRow:
    return CityRow(city, desired, ready, updated, "ReplicasAvailable", is_ready=True)


def a_progress(done: int = 3, total: int = 6) -> Progress:
    return Progress(done, total, "all instances to be ready", timedelta(seconds=4))


def test_a_table_names_every_column_where_there_is_room() -> None:
    assert render_table([a_row(), a_row("ORD", ready=1)], 78) == [
        "  city  desired  ready  up-to-date  reason",
        "  DFW         2      2           2  ReplicasAvailable",
        "  ORD         2      1           2  ReplicasAvailable",
    ]


def test_forty_columns_keep_numbers_and_reason() -> None:
    assert render_table([a_row()], 40) == [
        "city want rdy new reason",
        "DFW     2   2   2 ReplicasAvailable",
    ]


def test_a_city_without_a_report_has_a_dash_for_its_reason() -> None:
    row = CityRow("DFW", 2, 0, 0, "", is_ready=False)
    assert render_table([row], 78)[1].endswith("  -")


def test_a_truncated_line_is_marked() -> None:
    assert fit("ReplicasAvailable", 8) == "Replica~"
    assert fit("Replicas", 8) == "Replicas"


@pytest.mark.parametrize(
    ("done", "total", "shown"),
    [(0, 6, "[----------] 0/6"), (3, 6, "[#####-----] 3/6"), (6, 6, "[##########] 6/6")],
)
def test_a_bar_fills_with_what_is_done(done: int, total: int, shown: str) -> None:
    assert render_bar(a_progress(done, total), 30).startswith(shown)


def test_a_bar_shows_the_time_and_what_is_waited_for() -> None:
    assert render_bar(a_progress(), 78).endswith("3/6  4 s  all instances to be ready")


@given(st.integers(0, 200), st.integers(-5, 50), st.integers(0, 50))
def test_no_picture_is_wider_than_it_may_be(width: int, done: int, total: int) -> None:
    lines = [render_bar(a_progress(done, total), width), *render_table([a_row()], width)]
    assert all(len(line) <= max(width, NARROWEST) for line in lines)


def test_text_to_copy_is_not_broken() -> None:
    path = "/tmp/" + "x" * 60  # noqa: S108 a text, no file
    assert f"  {path}" in render_text(f"the logs are in {path}", 40)


@pytest.mark.parametrize(
    ("row", "is_settled"),
    [
        (a_row(), True),
        (a_row(ready=1), False),
        (a_row(updated=1), False),
        (CityRow("DFW", 2, 2, 2, "InstancesProvisioning", is_ready=False), False),
    ],
)
def test_a_city_is_settled_when_all_its_numbers_agree_and_it_reports_so(
    row: CityRow,
    is_settled: bool,
) -> None:
    assert row.is_settled is is_settled
