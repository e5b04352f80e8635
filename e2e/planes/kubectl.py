"""kubectl as people run it: a program, a kubeconfig, words on its output.

It caches discovery in the run folder and nowhere else, and sees no settings of the user.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from e2e.planes.errors import PlanesError
from e2e.planes.run_folder import RunFolder

TIMEOUT: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with one kubeconfig."""

    program: Path
    kubeconfig: Path
    folder: RunFolder

    async def run(self, *arguments: str, stdin: str = "") -> str:
        """Its output; raises with its complaint when it fails."""
        # In a thread: a link it talks through may live in this very event loop.
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
