"""Tries each wheel as its user gets it: alone, in an empty environment, on every Python at hand.

In a shared environment a missing dependency, file or licence goes unnoticed until a stranger
installs the wheel. Metadata are rated by pyroma. Of the libraries the README's examples are run,
and public names are compared with the last release by griffe. Of the operators the command is
started, of `kubectl compute` the time of its start is measured. A Python that is missing and a
library without release are named.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tools.workspace import OPERATORS, PACKAGES, PYTHONS, ROOT, Package, find_python

LIBRARIES: Final = ("api-types", "quota-client")
# Their README's examples are programs; those of the others are parts of one.
WITH_EXAMPLES: Final = (*LIBRARIES, "kubeconfig")
COMMAND: Final = "kubectl-compute"  # the package has the name of its command
STARTS: Final = 5
LONGEST_START: Final = 0.5  # seconds more than `python -c pass`
LOWEST_RATING: Final = 9
RATING: Final = re.compile(r"^Final rating: (\d+)/10$", re.MULTILINE)
EXAMPLE: Final = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


class WheelError(Exception):
    """A wheel that a user could not use; the message has package and reason."""


def say(text: str) -> None:
    print(f"wheels: {text}", flush=True)


def run(*command: str, folder: Path = ROOT) -> str:
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
        raise WheelError(f"`{' '.join(command[:6])} …` exited {ended.returncode}: {said}")
    return ended.stdout


def examples(package: Package) -> list[str]:
    """The Python examples of a library's README, each a program of its own."""
    return EXAMPLE.findall((package.path / "README.md").read_text("utf-8"))


def build(package: Package, into: Path) -> Path:
    run("uv", "build", "--quiet", "--package", package.distribution, "--out-dir", str(into))
    (wheel,) = into.glob(f"{package.distribution.replace('-', '_')}-*.whl")
    return wheel


def check_contents(package: Package, wheel: Path) -> None:
    """Wheel and sdist carry the licence, and the wheel its type information."""
    names = zipfile.ZipFile(wheel).namelist()
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        raise WheelError(f"{package.folder}: the wheel has no LICENSE")
    if f"{package.import_name}/py.typed" not in names:
        raise WheelError(f"{package.folder}: the wheel has no py.typed")
    (sdist,) = wheel.parent.glob(f"{package.distribution.replace('-', '_')}-*.tar.gz")
    with tarfile.open(sdist) as archive:
        if not any(
            name.count("/") == 1 and name.endswith("/LICENSE") for name in archive.getnames()
        ):
            raise WheelError(f"{package.folder}: the sdist has no LICENSE")


def rate(package: Package) -> int:
    """What pyroma gives the metadata, of 10."""
    printed = subprocess.run(
        [sys.executable, "-m", "pyroma", str(package.path)],
        check=False,
        capture_output=True,
        text=True,
    ).stdout
    found = RATING.search(printed)
    rating = int(found[1]) if found else 0
    if rating < LOWEST_RATING:
        raise WheelError(f"{package.folder}: pyroma rates it {rating} of 10: {printed.strip()}")
    return rating


def find_last_release(package: Package, root: Path = ROOT) -> str | None:
    """The newest tag of a release; None where there is none."""
    pattern = f"{package.folder}/v*"
    tags = run("git", "tag", "--list", pattern, "--sort=-version:refname", folder=root).split()
    return tags[0] if tags else None


def compare_with_release(package: Package, root: Path = ROOT) -> str:
    """One line with what public names were compared with; a break is an error."""
    tag = find_last_release(package, root)
    if tag is None:
        return f"{package.folder}: no release yet, so no public names to compare with"
    source = f"packages/{package.folder}/src"
    griffe = (sys.executable, "-m", "griffe", "check", package.import_name)
    run(*griffe, "--search", source, "--against", tag, folder=root)
    return f"{package.folder}: no public name of {tag} was broken"


def try_on(python: str, package: Package, wheels: Path, scratch: Path) -> str:
    """Installs one wheel, with what it declares to need, and uses it; one line with what ran."""
    environment = scratch / f"{package.folder}-{Path(python).name}"
    run("uv", "venv", "--quiet", "--python", python, str(environment))
    interpreter = str(environment / "bin" / "python")
    (wheel,) = wheels.glob(f"{package.distribution.replace('-', '_')}-*.whl")
    locked = ("--constraint", "locks/dev.txt", "--find-links", str(wheels), "--prerelease", "allow")
    run("uv", "pip", "install", "--quiet", "--python", interpreter, *locked, str(wheel))
    checked = (interpreter, "-I", "-W", "error")
    if package.folder in OPERATORS:
        program = environment / "bin" / f"compute-{package.folder}"
        run(str(program), "--help", folder=scratch)
        return "its command starts"
    if package.folder == COMMAND:
        return try_command(environment, scratch)
    run(*checked, "-c", f"import {package.import_name}", folder=scratch)
    if package.folder not in WITH_EXAMPLES:
        return "it can be imported"
    if package.folder in LIBRARIES:
        it = package.import_name
        version = f"import {it}; assert {it}.__version__ == '{package.version}'"
        run(*checked, "-c", version, folder=scratch)
    for number, example in enumerate(examples(package)):
        path = scratch / f"example_{number}.py"
        path.write_text(example, "utf-8")
        run(*checked, str(path), folder=scratch)
    return f"{len(examples(package))} examples of its README ran"


def try_command(environment: Path, scratch: Path) -> str:
    """Starts `kubectl-compute` from its wheel; its time, and the distributions that it brought."""
    interpreter, program = environment / "bin" / "python", environment / "bin" / COMMAND
    run(str(program), "why", "--help", folder=scratch)
    bare = _median(str(interpreter), "-c", "pass", folder=scratch)
    imported = _median(str(interpreter), "-c", "import compute_kubectl.__main__", folder=scratch)
    helped = _median(str(program), "--help", folder=scratch)
    extra = max(imported, helped) - bare
    if extra > LONGEST_START:
        raise WheelError(f"{COMMAND}: its start takes {extra:.2f} s more than Python's own")
    listed = run("uv", "pip", "list", "--format", "freeze", "--python", str(interpreter))
    return f"its command starts in {extra:.2f} s more than Python; with {', '.join(listed.split())}"


def _median(*command: str, folder: Path) -> float:
    took: list[float] = []
    for _ in range(STARTS):
        began = time.monotonic()
        run(*command, folder=folder)
        took.append(time.monotonic() - began)
    return statistics.median(took)


def pythons() -> Iterator[tuple[str, str]]:
    """Every promised Python that is at hand; one that is missing is named."""
    for minor in PYTHONS:
        found = find_python(minor)
        if found == minor:
            say(f"Python {minor}: skipped, it is neither on the PATH nor in pyenv")
        else:
            yield minor, found


def try_all(packages: Sequence[Package]) -> Iterator[str]:
    """Everything, one line each; gives the failures."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        wheels = scratch / "dist"
        for each in PACKAGES:  # siblings too: a wheel finds those it needs here
            check_contents(Package(each), build(Package(each), wheels))
        for package in packages:
            try:
                say(f"{package.folder}: pyroma rates it {rate(package)} of 10")
                if package.folder in LIBRARIES:
                    say(compare_with_release(package))
            except WheelError as failed:
                yield str(failed)
        for minor, python in pythons():
            for package in packages:
                try:
                    ran = try_on(python, package, wheels, scratch)
                    say(f"Python {minor}: {package.distribution}: {ran}")
                except WheelError as failed:
                    yield f"Python {minor}: {package.distribution}: {failed}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Try each wheel alone, on every Python at hand.")
    parser.add_argument("packages", nargs="*", choices=[[], *PACKAGES], help="all unless named")
    asked = parser.parse_args()
    try:
        failures = list(try_all([Package(each) for each in asked.packages or PACKAGES]))
    except WheelError as failed:
        failures = [str(failed)]
    for failure in failures:
        print(f"wheels: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
