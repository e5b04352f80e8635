"""Where the parts of this repository are, and how its packages depend on each other.

The one place that reads the workspace's own metadata, so that sessions, locks and checks agree on
it.
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
DISTRIBUTION_PREFIX: Final = "datum-compute-"
# In the order in which a release goes out when types change (house-style 13).
PACKAGES: Final = (
    "api-types",
    "kubeconfig",
    "kubectl-compute",
    "operator-kit",
    "quota-client",
    "sim-planes",
    "cell-operator",
    "management-operator",
    "pod-provider",
)
# A folder that is named after its command; distribution and module take the short name.
SHORT_NAMES: Final = {"kubectl-compute": "kubectl"}
# What ends the name in a requirement such as `kopf>=1.43,<2` or `x[extra]`.
NAME_END: Final = re.compile(r"[^A-Za-z0-9._-]")
OPERATORS: Final = ("cell-operator", "management-operator", "pod-provider")
# What `requires-python` and the classifiers promise; `nox -s pythons` runs each that is at hand.
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")


def find_python(minor: str) -> str:
    """The interpreter of a minor release, on the PATH or installed by pyenv; else just its name.

    A shim of pyenv is on the PATH for every release it knows and runs only those switched on.
    """
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        program = Path(folder) / f"python{minor}"
        if Path(folder).name != "shims" and os.access(program, os.X_OK):
            return str(program)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = sorted(root.glob(f"versions/{minor}.*/bin/python{minor}"))
    return str(installed[-1]) if installed else minor


def read_sessions() -> dict[str, str]:
    """Sessions of the noxfile and their source; read, not run: few environments have nox."""
    text = (ROOT / "noxfile.py").read_text("utf-8")
    return {
        node.name: ast.get_source_segment(text, node) or ""
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(one).startswith("nox.session") for one in node.decorator_list)
    }


@dataclass(frozen=True, slots=True)
class Package:
    """One folder below `packages/`, in this tree or in another one, as a former version."""

    folder: str
    root: Path = ROOT

    @property
    def path(self) -> Path:
        return self.root / "packages" / self.folder

    @property
    def distribution(self) -> str:
        return DISTRIBUTION_PREFIX + SHORT_NAMES.get(self.folder, self.folder)

    @property
    def import_name(self) -> str:
        return "compute_" + SHORT_NAMES.get(self.folder, self.folder).replace("-", "_")

    @property
    def version(self) -> str:
        document = tomllib.loads((self.path / "pyproject.toml").read_text("utf-8"))
        found: str = document["project"]["version"]
        return found

    def requirements(self) -> list[str]:
        """What the package declares to need, as its metadata has it."""
        document = tomllib.loads((self.path / "pyproject.toml").read_text("utf-8"))
        declared: list[str] = document["project"]["dependencies"]
        return declared

    def siblings(self) -> tuple[str, ...]:
        """Folders of the packages this one stands on, each before those that need it."""
        needed = set(self._direct_siblings())
        for sibling in tuple(needed):
            needed.update(Package(sibling, self.root).siblings())
        return tuple(folder for folder in PACKAGES if folder in needed)

    def _direct_siblings(self) -> list[str]:
        names = [NAME_END.split(line, maxsplit=1)[0] for line in self.requirements()]
        return [
            name.removeprefix(DISTRIBUTION_PREFIX)
            for name in names
            if name.startswith(DISTRIBUTION_PREFIX)
        ]
