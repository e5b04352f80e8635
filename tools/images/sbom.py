"""The CycloneDX bill of materials beside an image: what the lock names, by version and hash."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.images.commands import run
from tools.workspace import ROOT


def write_sbom(folder: str, into: Path) -> None:
    run(
        [
            *(sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible"),
            *("--spec-version", "1.6", "--output-format", "JSON", "--output-file", into),
            ROOT / "locks" / f"{folder}.txt",
        ]
    )
