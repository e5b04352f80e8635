"""What a pytest run leaves in `.spec/`, seen by running one on a small tree."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.workspace import ROOT

TEST = """
import pytest

@pytest.mark.spec("M-01")
def test_shown(): ...

@pytest.mark.spec("M-02")
@pytest.mark.fault("A1")
def test_broken(): raise AssertionError

def test_plain(): ...
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(TEST, "utf-8")
    return tmp_path


def run_pytest(tree: Path, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=tree,
        capture_output=True,
        check=False,
    )


def record(tree: Path, backend: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        (tree / f".spec/{backend}/tests__test_it.py.json").read_text("utf-8")
    )
    return found


def test_outcomes_are_kept_per_id_and_backend(tree: Path) -> None:
    run_pytest(tree)
    assert record(tree, "sim") == {
        "tests/test_it.py::test_broken": {"ids": ["M-02", "A1"], "outcome": "failed"},
        "tests/test_it.py::test_shown": {"ids": ["M-01"], "outcome": "passed"},
    }


def test_workers_of_one_run_lose_nothing_to_each_other(tree: Path) -> None:
    run_pytest(tree, "--numprocesses", "2", "--dist", "load")
    beside = record(tree, "sim")
    run_pytest(tree)
    assert beside == record(tree, "sim")
    assert beside


def test_a_run_of_one_test_keeps_what_its_file_has_shown(tree: Path) -> None:
    run_pytest(tree)
    run_pytest(tree, "-k", "shown")
    assert record(tree, "sim").keys() == {
        "tests/test_it.py::test_broken",
        "tests/test_it.py::test_shown",
    }


def test_another_backend_has_a_record_of_its_own(tree: Path) -> None:
    run_pytest(tree, "--planes", "real", "-k", "shown")
    assert record(tree, "real").keys() == {"tests/test_it.py::test_shown"}
    assert not (tree / ".spec/sim").exists()
