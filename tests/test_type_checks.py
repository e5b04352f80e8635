"""`nox -s check` fails on what either type checker finds, and both are asked."""

import sys
from pathlib import Path

import pytest

from tools import type_checks
from tools.type_checks import FOLDERS, MYPY, run_in_turn
from tools.workspace import ROOT

CLEAN = (sys.executable, "-c", "print('nothing')")
FINDING = (sys.executable, "-c", "import sys; print('a finding'); sys.exit(1)")


async def test_a_finding_fails_the_check_after_all_the_others_were_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await run_in_turn([FINDING, CLEAN]) is False
    assert capsys.readouterr().out.count("a finding\n") == 1
    assert await run_in_turn([CLEAN, CLEAN]) is True


@pytest.mark.parametrize("finds", ["MYPY", "PYRIGHT"])
async def test_either_checker_decides(finds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MYPY", "PYRIGHT"):
        monkeypatch.setattr(type_checks, name, (FINDING if name == finds else CLEAN,))
    assert await type_checks.check() is False


def test_every_folder_with_python_in_it_is_looked_at() -> None:
    seen = {path for command in MYPY for path in command if Path(ROOT / path).exists()}
    assert seen >= {*FOLDERS, "noxfile.py", "conftest.py"}
    packages = {f"packages/{path.parent.name}" for path in ROOT.glob("packages/*/pyproject.toml")}
    assert packages <= set(FOLDERS)
