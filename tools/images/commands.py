"""Programs that images are made with: runs them, and names the package of a missing one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

# Program to Debian's package.
NEEDED: Final = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "unshare": "util-linux"}


class ImagesError(Exception):
    """What went wrong, in one line with the remedy."""


def check_tools(*, is_root: bool) -> None:
    if not is_root:
        raise ImagesError("images: building needs root (mmdebstrap and mounts); run it with sudo")
    missing = sorted({package for tool, package in NEEDED.items() if shutil.which(tool) is None})
    if missing:
        raise ImagesError(f"images: not installed: {' '.join(missing)}; apt-get install them")


def run(command: Sequence[str | Path], environ: Mapping[str, str] | None = None) -> str:
    """The program's output; its last lines and the command when it fails."""
    words = [str(word) for word in command]
    ended = subprocess.run(
        words,
        check=False,
        text=True,
        capture_output=True,
        env={**os.environ, **(environ or {})},
    )
    if ended.returncode != 0:
        told = "\n".join((ended.stdout + ended.stderr).strip().splitlines()[-12:])
        raise ImagesError(
            f"images: `{' '.join(words[:6])} …` ended with {ended.returncode}:\n{told}"
        )
    return ended.stdout
