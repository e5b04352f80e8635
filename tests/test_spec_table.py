"""The table of shown statements counts markers and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.spec_table import claims, lines, outcomes, statements
from tools.workspace import ROOT

PAGE = """
- M-01 first statement, see also M-09
- M-02 second statement
- OU-01 of two letters
- E-P1 of one capability
"""
FAULTS = """
| id | fault |
|---|---|
| A1 | crash |
| AT-01 | attack |
"""
TEST = """
import pytest

# M-02 in a comment, and a name below, prove nothing
@pytest.mark.spec("M-01")
def test_one(): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.fault("A1"))])
def test_two_m_02(x): ...

class TestGroup:
    @pytest.mark.spec("M-77")
    def test_three(self): "spec M-02"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "docs/spec/management.md": PAGE,
        "docs/spec/faults.md": FAULTS,
        "tests/test_it.py": TEST,
        ".spec/sim/tests__test_it.py.json": json.dumps(
            {"tests/test_it.py::test_one": {"ids": ["M-01"], "outcome": "passed"}}
        ),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def test_statements_are_those_that_a_page_defines(tree: Path) -> None:
    assert statements(tree / "docs/spec") == {
        "A1": "faults.md",
        "AT-01": "faults.md",
        "M-01": "management.md",
        "M-02": "management.md",
        "OU-01": "management.md",
        "E-P1": "management.md",
    }


def test_only_literal_markers_claim_an_id(tree: Path) -> None:
    assert {(claim.shown_id, claim.test) for claim in claims(tree)} == {
        ("A1", "test_two_m_02"),
        ("M-01", "test_one"),
        ("M-77", "test_three"),
    }


def test_the_table_tells_outcomes_and_what_is_missing(tree: Path) -> None:
    told = "\n".join(lines(statements(tree / "docs/spec"), claims(tree), outcomes(tree / ".spec")))
    assert "M-01   sim passed" in told
    assert "A1     not run" in told
    assert "2 of 6 statements and rows have a test." in told
    assert "without a test, management.md: M-02 OU-01 E-P1" in told


def test_an_id_that_no_page_has_fails_the_session(tree: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tools.spec_table", "--root", str(tree)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "tests/test_it.py::test_three carries 'M-77', which no page has" in ended.stderr


def test_every_id_carried_in_this_tree_is_on_a_page() -> None:
    known = statements(ROOT / "docs/spec")
    assert [claim for claim in claims(ROOT) if claim.shown_id not in known] == []


# Rows whose proof is elsewhere than in a test, each with the place; there is none.
SHOWN_ELSEWHERE: dict[str, str] = {}


def test_every_row_of_the_fault_matrix_and_every_security_check_has_a_test() -> None:
    """`docs/spec/faults.md` 5: a check fails when a row has none."""
    rows = {row for row, page in statements(ROOT / "docs/spec").items() if page == "faults.md"}
    assert len(rows) > 70  # the pattern still finds the tables
    claimed = {claim.shown_id for claim in claims(ROOT)}
    assert rows - claimed - SHOWN_ELSEWHERE.keys() == set()
    assert SHOWN_ELSEWHERE.keys() <= rows - claimed
