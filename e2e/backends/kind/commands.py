"""Runs docker, kind, karmadactl and ip; a failure becomes one line with a remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, Self

from e2e.harness.errors import PlanesError
from e2e.harness.node.inotify import count_free
from e2e.harness.node.machine import too_few_watchers

NEEDED: Final = {
    "docker": "install docker and start it",
    "kind": "go install sigs.k8s.io/kind@v0.31.0",
    "karmadactl": "go install github.com/karmada-io/karmada/cmd/karmadactl@v1.18.2",
    "ip": "install iproute2",
}
# inotify instances for five clusters (systemd, kubelet, API server each) and Milo's planes.
WATCHERS: Final = 200
# Mostly for pulling images.
PATIENCE: Final = timedelta(minutes=10)
# A docker network of our own: its addresses are known in advance, and clusters of other users are
# not on it.
NETWORK: Final = "compute-kind"


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Properties of this machine beside installed programs."""

    is_root: bool
    watchers: int  # available inotify instances, counted up to the required number

    @classmethod
    def detect(cls) -> Self:
        return cls(os.geteuid() == 0, count_free(WATCHERS))


def check_machine(here: MachineFacts) -> None:
    """Raises for the first missing requirement."""
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
    """Runs a command and returns its output."""
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
