"""One operator as a process beside real planes, for the tests of that operator.

Each operator has its own configuration; start, log and the check for an unexpected exit are shared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from compute_sim_planes.json_types import JsonObject
from e2e.harness.stack.stack import RealPlanes

# operations.md 2: requests in flight are finished or aborted within 8 s of SIGTERM.
GRACE: Final = timedelta(seconds=20)
LAST_WORDS: Final = 4000


@dataclass(frozen=True, slots=True)
class OperatorProcess:
    """A running operator."""

    process: subprocess.Popen[bytes]
    planes: RealPlanes
    log: Path

    def check(self) -> None:
        """Raises if a process of the planes or the operator has ended."""
        self.planes.check()
        if self.process.poll() is not None:
            raise AssertionError(f"the operator ended:\n{self.log.read_text()[-LAST_WORDS:]}")


@contextmanager
def running_process(
    module: str, settings: JsonObject, *, kubeconfig: Path, planes: RealPlanes, folder: Path
) -> Generator[OperatorProcess]:
    """`python -m module` with these settings; `kubeconfig` is of its home, `folder` its own."""
    file, log = folder / "operator.json", folder / "operator.log"
    file.write_text(json.dumps(settings), "utf-8")
    environ = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(kubeconfig),
        "POD_NAMESPACE": "compute-system",
        "POD_NAME": "operator",
    }
    command = [sys.executable, "-m", module, "--server-config", str(file)]
    with log.open("wb") as written:
        process = subprocess.Popen(command, env=environ, stderr=written)
    try:
        yield OperatorProcess(process, planes, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=GRACE.total_seconds())
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
