"""The operators' executables: of this environment, or of wheels built for the run.

A developer's environment has our packages editable, so the last edit runs. With `--wheels` the
packages are built and installed with the versions pinned in `locks/`, one environment per operator:
what runs is what would be released.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from e2e.harness.errors import PlanesError

TREE: Final = Path(__file__).parents[3]
MANAGEMENT: Final = "compute-management-operator"
POD_PROVIDER: Final = "compute-pod-provider"
CELL: Final = "compute-cell-operator"
_FOLDERS: Final = {MANAGEMENT: "management-operator", CELL: "cell-operator"}
_SIBLINGS: Final = {
    MANAGEMENT: ("api-types", "kubeconfig", "operator-kit", "management-operator"),
    CELL: ("api-types", "kubeconfig", "operator-kit", "quota-client", "cell-operator"),
}


def of_this_environment() -> dict[str, Path]:
    """The executables in this interpreter's environment."""
    programs = {name: Path(sys.executable).parent / name for name in _FOLDERS}
    missing = [name for name, path in programs.items() if not path.exists()]
    if missing:
        raise PlanesError(
            f"looking for {missing[0]!r}: it is not beside {sys.executable}",
            remedy="install the packages of this repository, or use --wheels",
        )
    return programs


def of_wheels(folder: Path) -> dict[str, Path]:
    """Builds all wheels and installs each operator in its own environment."""
    wheels = folder / "wheels"
    for package in sorted({one for siblings in _SIBLINGS.values() for one in siblings}):
        _uv("build", "--wheel", "--out-dir", str(wheels), f"packages/{package}")
    return {name: _install(name, folder / name, wheels) for name in _FOLDERS}


def _install(program: str, environment: Path, wheels: Path) -> Path:
    python = environment / "bin" / "python"
    _uv("venv", "--python", sys.executable, str(environment))
    lock = TREE / "locks" / f"{_FOLDERS[program]}.txt"
    into = ("--python", str(python))
    _uv("pip", "install", *into, "--require-hashes", "-r", str(lock))
    ours = [
        str(wheel)
        for package in _SIBLINGS[program]
        for wheel in wheels.glob(f"datum_compute_{package.replace('-', '_')}-*.whl")
    ]
    _uv("pip", "install", *into, "--no-deps", *ours)
    return environment / "bin" / program


def _uv(*arguments: str) -> None:
    command = ["uv", *arguments]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PlanesError(
            f"running {' '.join(command)}: {done.stderr.strip()[-500:]}", remedy="see its words"
        )
