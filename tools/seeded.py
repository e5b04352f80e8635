"""Runs the seeded bugs: each is put into a copy of one package, and its tests must fail.

A suite that passes with a known bug in the code shows nothing about that bug. The bugs are data, in
`tests/seeded_bugs/*.toml`: the text to replace, which occurs once, and the tests that notice it.
The working tree is not changed: the copy comes first on the path of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, cast

from tools.bench import RESULTS
from tools.workspace import ROOT

SEEDS: Final = ROOT / "tests" / "seeded_bugs"
FAILED: Final = 1  # pytest's exit code where tests ran and failed; an error of its own is another
SHOWN: Final = 20  # lines of output of a run that is neither


class SeedError(ValueError):
    """A seed that cannot be planted; the message names it and the field."""


@dataclass(frozen=True, slots=True)
class Seed:
    """One known bug: a replacement of text in one file, and the tests that fail with it."""

    id: str
    bug: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def source(self) -> Path:
        """The folder of the package's sources that the file is in."""
        return ROOT / Path(*Path(self.file).parts[:3])

    def plant(self, folder: Path) -> None:
        """Copies the sources into a folder, with the bug."""
        shutil.copytree(self.source, folder, ignore=shutil.ignore_patterns("__pycache__"))
        target = folder / Path(*Path(self.file).parts[3:])
        target.write_text(self.planted(), "utf-8")

    def planted(self) -> str:
        """The text of the file with the bug in it."""
        path = ROOT / self.file
        if not path.is_file():
            raise SeedError(f"{self.id}.file: {self.file} does not exist")
        text = path.read_text("utf-8")
        if text.count(self.old) != 1:
            raise SeedError(
                f"{self.id}.old: occurs {text.count(self.old)} times in {self.file}, not once"
            )
        return text.replace(self.old, self.new)


class Verdict(StrEnum):
    KILLED = "killed"
    SURVIVED = "SURVIVED"
    BROKEN = "BROKEN"  # the tests could not run, which shows nothing


@dataclass(frozen=True, slots=True)
class SeedResult:
    """What became of one seed."""

    seed: Seed
    verdict: Verdict
    seconds: float
    output: str = ""


def read_seeds(folder: Path = SEEDS) -> list[Seed]:
    """All seeds, by file and order; raises SeedError for one that is incomplete."""
    seeds: list[Seed] = []
    for path in sorted(folder.glob("*.toml")):
        entries = tomllib.loads(path.read_text("utf-8")).get("seed", [])
        seeds += [_parse(entry, path.name) for entry in entries]
    repeated = {one.id for one in seeds if sum(other.id == one.id for other in seeds) > 1}
    if repeated:
        raise SeedError(f"ids that occur twice: {', '.join(sorted(repeated))}")
    return seeds


def _parse(entry: dict[str, object], origin: str) -> Seed:
    fields = {name: entry.get(name) for name in ("id", "bug", "file", "old", "new")}
    name = fields["id"] if isinstance(fields["id"], str) else "?"
    for field, value in fields.items():
        if not isinstance(value, str) or (not value and field != "new"):
            raise SeedError(f"{origin}, {name}.{field}: must be a text")
    given = entry.get("tests")
    tests = cast("list[object]", given) if isinstance(given, list) else []
    if not tests:
        raise SeedError(f"{origin}, {name}.tests: must be a list of tests")
    unknown = entry.keys() - {*fields, "tests"}
    if unknown:
        raise SeedError(f"{origin}, {name}.{min(unknown)}: is not known")
    texts = {field: str(value) for field, value in fields.items()}
    return Seed(**texts, tests=tuple(str(test) for test in tests))


def run_seed(seed: Seed) -> SeedResult:
    """Runs the tests of one seed on a copy that has it."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="seeded-") as folder:
        planted = Path(folder) / "src"
        seed.plant(planted)
        done = _run_tests(seed.tests, str(planted))
    verdict = {0: Verdict.SURVIVED, FAILED: Verdict.KILLED}.get(done.returncode, Verdict.BROKEN)
    lines = (done.stdout + done.stderr).splitlines()[-SHOWN:]
    output = "" if verdict is Verdict.KILLED else "\n".join(lines)
    return SeedResult(seed, verdict, time.monotonic() - begun, output)


def _run_tests(tests: Sequence[str], path: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests of every seeded bug.")
    parser.add_argument("ids", nargs="*", help="only these seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--unseeded", action="store_true", help="first see that the tests pass without a bug"
    )
    arguments = parser.parse_args()
    wanted: list[str] = arguments.ids
    try:
        seeds = [seed for seed in read_seeds() if not wanted or seed.id in wanted]
        for seed in seeds:
            seed.planted()
    except SeedError as error:
        print(f"seeded: {error}", file=sys.stderr)
        return 2
    missing = set(wanted) - {seed.id for seed in seeds}
    if missing:
        print(f"seeded: no seed is called {', '.join(sorted(missing))}", file=sys.stderr)
        return 2
    if arguments.unseeded and not _pass_without_bugs(seeds):
        return 1
    begun = time.monotonic()
    with ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        results = [*pool.map(run_seed, seeds)]
    _print(results, time.monotonic() - begun)
    if not wanted:
        _remember(results, time.monotonic() - begun)
    return 0 if all(one.verdict is Verdict.KILLED for one in results) else 1


def _pass_without_bugs(seeds: Sequence[Seed]) -> bool:
    tests = sorted({test for seed in seeds for test in seed.tests})
    done = _run_tests([*tests, "-n", "auto"])
    if done.returncode:
        print(f"seeded: tests fail without any bug\n{done.stdout[-4000:]}", file=sys.stderr)
    return not done.returncode


def _print(results: Sequence[SeedResult], seconds: float) -> None:
    for one in results:
        print(f"{one.verdict:8} {one.seconds:6.1f} s  {one.seed.id:8} {one.seed.bug}")
        if one.output:
            print("         " + "\n         ".join(one.output.splitlines()))
    killed = sum(one.verdict is Verdict.KILLED for one in results)
    share = 100 * killed / len(results) if results else 0.0
    print(f"\n{killed} of {len(results)} seeded bugs killed ({share:.0f} %) in {seconds:.0f} s")


def _remember(results: Sequence[SeedResult], seconds: float) -> None:
    killed = sum(one.verdict is Verdict.KILLED for one in results)
    report = {
        "seeds": len(results),
        "killed": killed,
        "seconds": round(seconds, 1),
        "holds": killed == len(results),
        "survivors": [one.seed.id for one in results if one.verdict is not Verdict.KILLED],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "seeded.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
