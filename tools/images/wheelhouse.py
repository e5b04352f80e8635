"""Every wheel that an image is made of: those the lock names, ours, and pip's own."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from tools.images.commands import run
from tools.workspace import Package

# Debian 12's, which is the base's; wheels must fit the interpreter in the image, not ours.
PYTHON: Final = "3.11"
# The earliest time of the zip format; the same sources give the same wheel.
EARLIEST: Final = "315532800"


def make_wheelhouse(package: Package, into: Path) -> None:
    """Fills `into`, from nothing: a wheel of a former lock must not be found there."""
    locks = package.root / "locks"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    _download(locks / f"{package.folder}.txt", into)
    _download(locks / "image-builder.txt", into)
    for sibling in (*package.siblings(), package.folder):
        path = Package(sibling, package.root).path
        run(
            ["uv", "build", "--quiet", "--wheel", "--out-dir", into, path],
            {"SOURCE_DATE_EPOCH": EARLIEST},
        )
    (into / ".gitignore").unlink(missing_ok=True)


def _download(lock: Path, into: Path) -> None:
    run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary", ":all:", "--python-version", PYTHON),
            *("--require-hashes", "--requirement", lock, "--dest", into),
        ]
    )
