"""The program of Instances in scenarios burns CPU on request, and answers meanwhile."""

from __future__ import annotations

import runpy
import time
from pathlib import Path
from typing import Final

import pytest

from e2e.backends.pods.instances import images

PROGRAM: Final = Path(images.WEB)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_of_its_own_burns_until_it_is_to_rest() -> None:
    program = runpy.run_path(str(PROGRAM))
    burning: list[int] = []
    program["burn"](burning)
    program["burn"](burning)
    (pid,) = burning
    deadline = time.monotonic() + 30
    while _ticks_of(pid) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _ticks_of(pid) >= 5
    program["rest"](burning)
    assert burning == []
    assert not Path(f"/proc/{pid}").exists()


def _ticks_of(pid: int) -> int:
    """User time of a process, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return int(fields[11])
