"""Runs the programs kind is driven with; what they say goes wrong is one line with a remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from e2e.planes.errors import PlanesError

NEEDED: Final = {
    "docker": "install docker and start it",
    "kind": "go install sigs.k8s.io/kind@v0.31.0",
    "karmadactl": "install karmadactl v1.18.2",
}
# Pulling images is most of it.
PATIENCE: Final = timedelta(minutes=10)


def check_programs() -> None:
    """Raises for the first thing that is missing."""
    for program, remedy in NEEDED.items():
        if shutil.which(program) is None:
            raise PlanesError(f"looking for {program}: it is not there", remedy=remedy)
    try:
        run(["docker", "info", "--format", "{{.ServerVersion}}"])
    except PlanesError as cause:
        raise PlanesError(
            "asking docker for its version: its daemon does not answer",
            remedy="start docker, or let this user talk to it",
        ) from cause


def run(command: Sequence[str | Path]) -> str:
    """What it printed."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            env={**os.environ},
            capture_output=True,
            text=True,
            timeout=PATIENCE.total_seconds(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PlanesError(
            f"running {' '.join(words)}: no end within {PATIENCE}", remedy="look at docker"
        ) from None
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "it failed").splitlines()[-1]
        raise PlanesError(f"running {' '.join(words)}: {last}", remedy="see its words")
    return done.stdout.strip()
