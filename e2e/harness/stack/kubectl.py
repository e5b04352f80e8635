"""Runs kubectl with a kubeconfig, isolated from the user's settings.

Its discovery cache is in the run folder. Rendering needs neither a kubeconfig nor running planes.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from e2e.harness.errors import PlanesError
from e2e.harness.processes.run_folder import RunFolder
from e2e.harness.programs.binaries import PLANES
from e2e.harness.programs.store import Store

TIMEOUT: Final = timedelta(seconds=60)
NO_KUBECTL: Final = "no kubectl is to be had: `./dev planes` builds one"


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with one kubeconfig."""

    program: Path
    kubeconfig: Path
    folder: RunFolder

    async def run(self, *arguments: str, stdin: str = "") -> str:
        """Its output; raises with its error message if it fails."""
        # In a thread: a link that it uses may run on this event loop.
        done = await asyncio.to_thread(self._run, arguments, stdin)
        if done.returncode != 0:
            raise PlanesError(
                f"running kubectl {' '.join(arguments)}: {done.stderr.strip()}",
                remedy="see its words",
            )
        return done.stdout

    def _run(self, arguments: tuple[str, ...], stdin: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program), f"--kubeconfig={self.kubeconfig}", *arguments],
            env=self.folder.environment(os.environ.get("PATH", os.defpath)),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT.total_seconds(),
            check=False,
        )


def find_kubectl() -> Path | None:
    """The kubectl built with the planes, else the one on the PATH."""
    store = Store.of_user()
    built = next(store.path_of(binary) for binary in PLANES if binary.name == "kubectl")
    installed = shutil.which("kubectl")
    return built if built.exists() else Path(installed) if installed else None


def kustomize(folder: Path) -> str:
    """The output of `kubectl kustomize` for a folder; a warning is an error, since users would see
    it.
    """
    kubectl = find_kubectl()
    if kubectl is None:
        raise PlanesError(
            f"rendering {folder}: there is no kubectl",
            remedy="run `./dev planes`, or put any recent kubectl on the PATH",
        )
    done = subprocess.run(
        [str(kubectl), "kustomize", str(folder)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT.total_seconds(),
        check=False,
    )
    if done.returncode or done.stderr:
        raise PlanesError(f"rendering {folder}: {done.stderr.strip()}", remedy="see its words")
    return done.stdout
