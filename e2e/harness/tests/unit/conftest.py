"""A fake Go command for tests of the build."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.harness.processes.run_folder import RunFolder
from e2e.harness.programs.store import Store

# Prints its release, records every call, and on `build` does what FAKE_GO names.
FAKE_GO = """\
#!{python}
import os, pathlib, sys, time
arguments = sys.argv[1:]
if arguments[:2] == ["env", "GOVERSION"]:
    print(os.environ.get("FAKE_GO_VERSION", "go1.99.0"))
    sys.exit()
with open({calls!r}, "a") as calls:
    calls.write(" ".join(arguments) + "\\n")
target = pathlib.Path(arguments[arguments.index("-o") + 1])
target.write_text("half")
if "FAKE_GO_HANGS" in os.environ:
    time.sleep(600)
if "FAKE_GO_SAYS" in os.environ:
    sys.stderr.write("go: downloading example.com/x v1.0.0\\n" + os.environ["FAKE_GO_SAYS"] + "\\n")
    sys.exit(1)
time.sleep(float(os.environ.get("FAKE_GO_TAKES", "0")))
target.write_text("whole")
"""


@dataclass(frozen=True, slots=True)
class BuildCommand:
    """`python -m e2e.harness` with the test's own store and Go command."""

    cache: Path
    calls: Path
    environment: dict[str, str]

    @property
    def store(self) -> Store:
        return Store(self.cache / "datum-compute" / "planes")

    def start(self, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "e2e.harness", *arguments],
            env=self.environment | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, **settings) as started:
            output, errors = started.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, started.returncode, output, errors)

    def go_calls(self) -> list[str]:
        return self.calls.read_text("utf-8").splitlines() if self.calls.exists() else []


@pytest.fixture
def build_command(tmp_path: Path) -> BuildCommand:
    calls = tmp_path / "calls"
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(FAKE_GO.format(python=sys.executable, calls=str(calls)), "utf-8")
    go.chmod(0o755)
    cache = tmp_path / "cache"
    environment = {
        "PATH": f"{go.parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(cache),
        "PYTHONPATH": str(Path(__file__).parents[4]),
    }
    return BuildCommand(cache, calls, environment)


@pytest.fixture
def run_folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run")
