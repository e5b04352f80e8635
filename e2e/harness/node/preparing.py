"""Prepares a machine for nodes: installs Debian packages with apt-get as root.

A failure is one line with its reason, after a bounded time; the caller continues without nodes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from e2e.harness.errors import PlanesError
from e2e.harness.node.machine import Machine, check_machine

# It takes twenty seconds on a fast network; an unresponsive mirror must not block.
PATIENCE: Final = timedelta(minutes=5)
# Non-interactive, with a bounded wait for another apt-get.
OPTIONS: Final = ("--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=60")
Run: TypeAlias = Callable[[Sequence[str]], None]


def prepare(detect: Callable[[], Machine] = Machine.detect) -> None:
    """Raises with reason and remedy if nodes cannot run here."""
    machine = detect()
    if machine.missing and machine.is_root and shutil.which("apt-get"):
        install(machine.missing, run)
        machine = detect()
    check_machine(machine)


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
