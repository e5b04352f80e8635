"""How a test on real planes fails when one of their processes has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.helpers import pids_with

TREE: Final = Path(__file__).parents[4]
A_TEST_THAT_KILLS: Final = """
import os, signal
from e2e.harness.testing.fixtures import stacks_up

def test_that_kills(real_api_server):
    (planes,) = stacks_up()
    victim = next(p for p in planes.processes if p.name == os.environ["VICTIM"])
    os.kill(victim.pid, signal.SIGKILL)
    # Until the last of its threads has ended; its exit code is left to the stack.
    os.waitid(os.P_PID, victim.pid, os.WEXITED | os.WNOWAIT)

def test_after_it(real_api_server):
    pass
"""


@pytest.mark.parametrize("victim", ["etcd", "single.kube-apiserver"])
def test_death_of_a_process_is_what_tests_on_its_stack_fail_with(
    tmp_path: Path, victim: str
) -> None:
    written = tmp_path / "test_deadly.py"
    written.write_text(A_TEST_THAT_KILLS, "utf-8")
    settings = f"--config-file={TREE / 'pyproject.toml'}"
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", settings, "--planes=real", str(written)],
        env={**os.environ, "PYTHONPATH": str(TREE), "VICTIM": victim},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    # Once after the test that lost it and once before every other, instead of timeouts.
    assert ended.stdout.count(f"ProcessDiedError: {victim}: killed by SIGKILL") >= 2
    assert "1 passed, 2 errors" in ended.stdout


async def test_every_process_of_a_stack_is_looked_after(real_planes: RealPlanes) -> None:
    running = set(pids_with(str(real_planes.run_folder.path)))
    assert running == {process.pid for process in real_planes.processes}
