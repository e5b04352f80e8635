from __future__ import annotations

from pathlib import Path

import pytest

from e2e.oracles.matrix import read_matrix


def test_the_matrix_has_every_group_and_no_row_twice() -> None:
    rows = read_matrix()
    ids = [row.id for row in rows]
    assert len(ids) == len(set(ids))
    assert {row.group for row in rows} == set("ABCDEFG")
    assert all(row.fault and row.criterion for row in rows)


def test_rows_define_whether_all_oracles_must_hold() -> None:
    rows = {row.id: row for row in read_matrix()}
    assert rows["A1"].is_standard
    assert not rows["B3"].is_standard


def test_a_page_without_rows_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text("## 3. Fault matrix\n\nnothing\n", "utf-8")
    with pytest.raises(ValueError, match="has no rows of faults"):
        read_matrix(page)
