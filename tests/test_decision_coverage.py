"""Branches of `plan` and `status` that no test of an operator takes are named after its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.decision_coverage import (
    Measured,
    NotMeasuredError,
    find_decisions,
    main,
    measure,
    run_tests,
)
from tools.workspace import OPERATORS, Package

PLAN = """\
from typing import Literal, assert_never


def plan(size: int, mode: Literal["a", "b"]) -> str:
    chosen = ""
    if size > 3:
        chosen = "large"
    if size < 0:
        return "negative"
    match mode:
        case "a":
            return chosen
        case "b":
            return chosen + "b"
        case _:
            assert_never(mode)
"""
FIRST = """\
def plan(sizes: list[int]) -> int | None:
    for size in sizes:
        if size:
            return size
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with one decision and no test."""
    write(tmp_path / "src/sized/hub/plan.py", PLAN)
    write(tmp_path / "pytest.ini", "[pytest]\npythonpath = src\naddopts = --import-mode=importlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take most of the time
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def measured(project: Path, *calls: str, workers: int = 0) -> Measured:
    """With a test per call, in a file of its own."""
    for number, call in enumerate(calls):
        text = f"from sized.hub.plan import plan\n\ndef test(): {call}\n"
        write(project / f"tests/test_{number}.py", text)
    decisions, data = find_decisions(project / "src"), project / "coverage"
    assert run_tests(decisions, data, ("-q", "-p", "xdist", f"-n{workers}", "tests")) == 0
    return measure(decisions, data)


def test_a_line_that_neither_of_two_workers_reached_is_named(project: Path) -> None:
    found = measured(project, "plan(1, 'a')", "plan(4, 'b')", workers=2)
    assert found.describe("sized").splitlines() == [
        "plan and status of sized: 5 of 6 branches; not reached:",
        "  src/sized/hub/plan.py:9",
    ]


def test_a_branch_between_lines_that_were_all_run_is_named(project: Path) -> None:
    found = measured(project, "plan(4, 'a')", "plan(4, 'b')")
    place = "src/sized/hub/plan.py"
    assert found.missing == (f"{place}:9", f"{place}:6 -> 8")


def test_the_end_of_a_function_is_named_as_such(project: Path) -> None:
    write(project / "src/sized/hub/plan.py", FIRST)
    place = "src/sized/hub/plan.py"
    assert measured(project, "plan([0, 1])").missing == (f"{place}:2 -> return",)


def test_all_branches_are_one_line_and_what_types_exclude_is_no_branch(project: Path) -> None:
    found = measured(project, "plan(1, 'a')", "plan(4, 'b')", "plan(-1, 'a')")
    assert found.describe("sized") == "plan and status of sized: 100 % of branches"


def test_a_module_that_no_test_imports_is_named(project: Path) -> None:
    write(project / "src/sized/hub/status/counters.py", "COUNTED = 1\n")
    found = measured(project, "plan(1, 'a')", "plan(4, 'b')", "plan(-1, 'a')")
    assert found.missing == ("src/sized/hub/status/counters.py:1",)


def test_decisions_are_found_at_any_depth_and_by_their_whole_name(tmp_path: Path) -> None:
    decisions = ("a/plan.py", "a/b/status.py", "hub/c/plan/__init__.py", "hub/c/status/d/e.py")
    for path in (*decisions, "planes.py", "planes.py", "a/status_lag.py", "a/observe.py"):
        write(tmp_path / path, "")
    found = {path.relative_to(tmp_path).as_posix() for path in find_decisions(tmp_path)}
    assert found == {*decisions}


@pytest.mark.parametrize("folder", OPERATORS)
def test_every_operator_decides_and_tells(folder: str) -> None:
    found = find_decisions(Package(folder).path / "src")
    assert {name for name in ("plan", "status") for path in found if name in str(path)} == {
        "plan",
        "status",
    }


def test_a_package_without_decisions_has_no_figure() -> None:
    with pytest.raises(NotMeasuredError, match="no module named plan or status"):
        main(["api-types", "-q"])


def test_nothing_measured_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(NotMeasuredError, match="reading coverage: "):
        measure([tmp_path / "plan.py"], tmp_path / "coverage")


def test_failing_tests_fail_the_run_and_have_no_figure(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["cell-operator", "-q", "-p", "no:cacheprovider", "no/such/test.py"]) != 0
    assert "plan and status" not in capfd.readouterr().out
