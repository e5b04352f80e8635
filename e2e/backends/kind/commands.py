"""Runs the programs kind is driven with; what they say goes wrong is one line with a remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, Self

from e2e.planes.errors import PlanesError
from e2e.planes.node.inotify import count_free
from e2e.planes.node.machine import too_few_watchers

NEEDED: Final = {
    "docker": "install docker and start it",
    "kind": "go install sigs.k8s.io/kind@v0.31.0",
    "karmadactl": "go install github.com/karmada-io/karmada/cmd/karmadactl@v1.18.2",
    "ip": "install iproute2",
}
# Of files: five clusters with systemd, kubelet and an API server each, and Milo's planes.
WATCHERS: Final = 200
# Pulling images is most of it.
PATIENCE: Final = timedelta(minutes=10)
# Every cluster is on a network of docker's that is ours: its addresses are known beforehand, and
# clusters that somebody else made with kind are not on it.
NETWORK: Final = "compute-kind"


@dataclass(frozen=True, slots=True)
class Here:
    """What is asked of this machine beside programs."""

    is_root: bool
    watchers: int  # of files, that can be had; no more than are wanted

    @classmethod
    def look(cls) -> Self:
        return cls(os.geteuid() == 0, count_free(WATCHERS))


def check_machine(here: Here) -> None:
    """Raises for the first thing that is missing."""
    for program, remedy in NEEDED.items():
        if shutil.which(program) is None:
            raise PlanesError(f"looking for {program}: it is not there", remedy=remedy)
    if not here.is_root:
        raise PlanesError(
            "looking into nodes: this user is not root, and their processes and files are root's",
            remedy="run it as root",
        )
    if here.watchers < WATCHERS:
        raise too_few_watchers(here.watchers, WATCHERS)
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
            env={**os.environ, "KIND_EXPERIMENTAL_DOCKER_NETWORK": NETWORK},
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
