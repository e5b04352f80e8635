"""Makes a machine fit for nodes: Debian's packages, by apt-get, where we are root.

Never a guess and never a hang: what cannot be had is one line with its reason, and whoever called
goes on without nodes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from e2e.planes.errors import PlanesError
from e2e.planes.node.machine import Machine, check_machine

# Twenty seconds on a quick line; a mirror that answers nothing must not hold anybody up.
PATIENCE: Final = timedelta(minutes=5)
# Nobody is there to answer questions, and a lock of another apt-get is waited for, not for ever.
OPTIONS: Final = ("--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=60")
Run: TypeAlias = Callable[[Sequence[str]], None]


def prepare(look: Callable[[], Machine] = Machine.look) -> None:
    """Raises where nodes cannot run here, with the reason and the remedy."""
    found = look()
    if found.missing and found.is_root and shutil.which("apt-get"):
        install(found.missing, run)
        found = look()
    check_machine(found)


def install(packages: Sequence[str], run: Run) -> None:
    run(["apt-get", "update", *OPTIONS[-2:]])
    run(["apt-get", "install", *OPTIONS, *packages])


def run(command: Sequence[str]) -> None:
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=quiet,
            capture_output=True,
            text=True,
            timeout=PATIENCE.total_seconds(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PlanesError(
            f"running {' '.join(command)}: no end within {PATIENCE}",
            remedy="install the packages by hand, from a mirror that answers",
        ) from None
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip() or "it failed").splitlines()
        raise PlanesError(
            f"running {' '.join(command)}: {words[-1]}",
            remedy="install the packages by hand",
        )
