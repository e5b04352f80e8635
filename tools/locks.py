"""Makes and checks `locks/`: which releases, and which bytes of them, every environment gets.

A lock has no addresses: the index is the user's choice. A digest of the dependency tables shows
whether the locks still belong to them, because resolving again against an index would fail a check
for reasons that no change of ours made.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.workspace import OPERATORS, PACKAGES, PYTHONS, ROOT, Package

LOCKS: Final = ROOT / "locks"
DIGEST: Final = LOCKS / "inputs.sha256"
# A third-party release waits a week: most bad ones are withdrawn by then.
QUARANTINE: Final = "7 days"


@dataclass(frozen=True, slots=True)
class Target:
    """One file in `locks/`: the requirements of a package, of dependency groups, or of both."""

    name: str
    package: str | None = None
    groups: tuple[str, ...] = field(default=())
    extras: tuple[str, ...] = field(default=())

    @property
    def path(self) -> Path:
        return LOCKS / f"{self.name}.txt"

    def sources(self) -> list[str]:
        package = [f"packages/{self.package}/pyproject.toml"] if self.package else []
        package += [part for extra in self.extras for part in ("--extra", extra)]
        if self.package and self.groups:
            package.append("--all-extras")  # tests cover what a package offers beyond its core
        return package + [
            part for group in self.groups for part in ("--group", f"pyproject.toml:{group}")
        ]


# What images have beyond an operator's core: an endpoint for traces may be set for a whole cluster.
IMAGE_EXTRAS: Final = ("otlp",)

TESTS: Final = {
    folder: Target(f"{folder}-tests", package=folder, groups=("test", f"test-{folder}"))
    for folder in PACKAGES
}
TARGETS: Final = (
    Target("door", groups=("door",)),
    Target("dev", groups=("dev",)),
    Target("image-builder", groups=("image-builder",)),
    Target("site", groups=("site",)),
    *(Target(folder, package=folder, extras=IMAGE_EXTRAS) for folder in OPERATORS),
    *TESTS.values(),
)


def dependency_tables() -> dict[str, object]:
    """Everything in the pyproject files that a lock is computed from."""
    tables: dict[str, object] = {}
    for path in (
        ROOT / "pyproject.toml",
        *(Package(folder).path / "pyproject.toml" for folder in PACKAGES),
    ):
        document = tomllib.loads(path.read_text("utf-8"))
        project = document.get("project", {})
        tables[path.relative_to(ROOT).as_posix()] = {
            "dependencies": project.get("dependencies"),
            "optional": project.get("optional-dependencies"),
            "python": project.get("requires-python"),
            "groups": document.get("dependency-groups"),
        }
    return tables


def inputs_digest() -> str:
    return hashlib.sha256(json.dumps(dependency_tables(), sort_keys=True).encode()).hexdigest()


def resolve(target: Target, output: str, *options: str) -> list[str]:
    """The command that writes which releases a target gets, our own packages left out."""
    siblings = [
        part for folder in PACKAGES for part in ("--no-emit-package", Package(folder).distribution)
    ]
    return [
        *("uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"),
        *("--python-version", PYTHONS[0], "--exclude-newer", QUARANTINE, *siblings, *options),
        *(*target.sources(), "--output-file", output),
    ]


def make(extra: list[str]) -> None:
    for target in TARGETS:
        print(f"locking {target.name}", flush=True)
        output = str(target.path.relative_to(ROOT))
        command = resolve(target, output, "--universal", "--generate-hashes", *extra)
        subprocess.run(command, cwd=ROOT, check=True)
    DIGEST.write_text(inputs_digest() + "\n", "utf-8")


def problems() -> list[str]:
    """What is wrong with the committed locks, one sentence each."""
    found = [
        f"{target.path.relative_to(ROOT)} is missing"
        for target in TARGETS
        if not target.path.exists()
    ]
    wanted_names = {target.path.name for target in TARGETS}
    found += [
        f"locks/{path.name} belongs to no target"
        for path in sorted(LOCKS.glob("*.txt"))
        if path.name not in wanted_names
    ]
    found += [
        f"locks/{path.name} names an address: a lock says which bytes, never where from"
        for path in sorted(LOCKS.glob("*.txt"))
        if "://" in path.read_text("utf-8")
    ]
    if not DIGEST.exists() or DIGEST.read_text("utf-8").strip() != inputs_digest():
        found.append("a pyproject.toml moved on without the locks")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Make or check the files in locks/.")
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    parser.add_argument(
        "--upgrade", action="store_true", help="take newer releases than those locked"
    )
    asked = parser.parse_args()
    if not asked.check:
        make(["--upgrade"] if asked.upgrade else [])
    for problem in problems():
        print(f"locks: {problem}; run `./dev lock`", file=sys.stderr)
    return 1 if problems() else 0


if __name__ == "__main__":
    sys.exit(main())
