"""Plays a release of everything on a throw-away clone: each package, the installation, the wheels.

A fragment that towncrier does not take, a version that a sibling forbids or a file that a wheel
lacks would otherwise be found on the day of a release, with half of the tags made. The clone has
no remote, so that nothing can be published; its tags and commits go away with it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.workspace import OPERATORS, PACKAGES, ROOT, Package

DEFAULT_VERSION: Final = "0.1.0"
# Of an image that was never pushed: the files of the installation name some digest.
DIGEST: Final = "sha256:" + "a1" * 32
INSTALL_FILES: Final = "install-*.yaml"


class RehearsalError(Exception):
    """A step of a release that failed; the message has the step and its output."""


def say(text: str) -> None:
    print(f"rehearsal: {text}", flush=True)


def run(folder: Path, *command: str) -> str:
    ended = subprocess.run(
        command,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
    )
    if ended.returncode:
        said = (ended.stderr + ended.stdout).strip()[-2000:]
        raise RehearsalError(f"`{' '.join(command[:8])}` exited {ended.returncode}: {said}")
    return ended.stdout


def make_clone(root: Path, into: Path) -> Path:
    run(root, "git", "clone", "--quiet", str(root), str(into))
    run(into, "git", "remote", "remove", "origin")
    run(into, "git", "config", "user.name", "A rehearsal")
    run(into, "git", "config", "user.email", "rehearsal@example.com")
    # Earlier tags would refuse a version that was released.
    for tag in run(into, "git", "tag", "--list").split():
        run(into, "git", "tag", "--delete", tag)
    return into


def release(clone: Path, *arguments: str) -> str:
    return run(clone, sys.executable, "-m", "tools.release", *arguments)


def release_package(clone: Path, package: Package, version: str) -> str:
    """Releases one package and checks what it leaves; one line about its changelog."""
    folder = clone / "packages" / package.folder
    release(clone, package.folder, version)
    left = sorted(path.name for path in (folder / "changes.d").glob("*.md"))
    if left:
        raise RehearsalError(f"{package.folder}: fragments are left: {', '.join(left)}")
    section = read_section((folder / "CHANGELOG.md").read_text("utf-8"), version)
    sentences = sum(line.startswith("- ") for line in section)
    if not sentences:
        raise RehearsalError(f"{package.folder}: CHANGELOG.md says nothing of {version}")
    return f"{package.folder}/v{version}: {sentences} entries in CHANGELOG.md"


def read_section(changelog: str, version: str) -> list[str]:
    """The lines of one release."""
    after = changelog.partition(f"## {version} (")[2]
    return re.split(r"^## ", after, maxsplit=1, flags=re.MULTILINE)[0].splitlines()


def try_wheels(clone: Path, version: str, scratch: Path) -> str:
    """Installs all released wheels together, and nothing of ours from elsewhere."""
    dist, environment = clone / "dist", scratch / "installed"
    names = [Package(folder).distribution for folder in PACKAGES]
    wheels = [*dist.glob(f"*-{version}-py3-none-any.whl")]
    if len(wheels) != len(names):
        raise RehearsalError(f"{len(wheels)} wheels of {version}, and {len(names)} packages")
    run(clone, "uv", "venv", "--quiet", "--python", sys.executable, str(environment))
    python = str(environment / "bin" / "python")
    given = ("--constraint", "locks/dev.txt", *map(str, wheels))
    run(clone, "uv", "pip", "install", "--quiet", "--python", python, *given)
    run(clone, "uv", "pip", "check", "--quiet", "--python", python)
    for folder in OPERATORS:
        shown = run(scratch, str(environment / "bin" / f"compute-{folder}"), "--version")
        if version not in shown:
            raise RehearsalError(f"compute-{folder} --version says {shown.strip()}")
    return f"{len(wheels)} wheels installed together; the operators say {version}"


def release_installation(clone: Path, version: str) -> str:
    for folder in OPERATORS:
        release(clone, "--image", f"compute-{folder}={DIGEST}")
    run(clone, "git", "commit", "--quiet", "--all", "--message", f"Name the images of {version}")
    release(clone, "deploy", version)
    files = sorted(path.name for path in (clone / "dist").glob(INSTALL_FILES))
    return f"deploy/v{version}: {', '.join(files)}"


def rehearse(root: Path, version: str, scratch: Path) -> Iterator[str]:
    """One line for each step; raises at the first that fails."""
    clone = make_clone(root, scratch / "clone")
    for folder in PACKAGES:
        yield release_package(clone, Package(folder), version)
    yield try_wheels(clone, version, scratch)
    yield release_installation(clone, version)
    if left := run(clone, "git", "status", "--porcelain"):
        raise RehearsalError(f"the clone has changes that no commit has: {left.strip()}")
    tags = run(clone, "git", "tag", "--list").split()
    wanted = {f"{name}/v{version}" for name in (*PACKAGES, "deploy")}
    if set(tags) != wanted:
        raise RehearsalError(f"tags: {', '.join(tags)}")
    yield f"{len(tags)} tags, and no change that is not committed"


def main() -> int:
    parser = argparse.ArgumentParser(description="Play a release on a throw-away clone.")
    parser.add_argument("version", nargs="?", default=DEFAULT_VERSION)
    version: str = parser.parse_args().version
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for line in rehearse(ROOT, version, Path(scratch)):
                say(line)
    except RehearsalError as failed:
        print(f"rehearsal: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
