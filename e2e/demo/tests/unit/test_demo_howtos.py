"""How-tos: a kubectl command without output fails; other commands run unchanged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from e2e.demo.howtos import PRINTING

KUBECTL = """#!/bin/sh
case "$*" in
  *none*) echo "No resources found" >&2 ;;
  *broken*) echo "half"; exit 3 ;;
  *apply*) cat ;;
  *) printf 'a\\nb\\n' ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL, "utf-8")
    program.chmod(0o755)
    return tmp_path


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", PRINTING + script],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_that_prints_nothing_fails_by_its_name(folder: Path) -> None:
    done = run(folder, "kubectl get workloaddeployments -l none\nkubectl get more\n")

    assert done.returncode == 1
    assert done.stderr.endswith("kubectl get workloaddeployments -l none: printed nothing\n")
    assert done.stdout == ""


def test_output_passes_to_screens_pipes_and_variables_as_it_was(folder: Path) -> None:
    done = run(
        folder, 'kubectl get x\nkubectl get y | kubectl apply -f -\necho "<$(kubectl get z)>"'
    )

    assert (done.returncode, done.stdout) == (0, "a\nb\na\nb\n<a\nb>\n")


def test_a_command_that_fails_keeps_its_code(folder: Path) -> None:
    done = run(folder, "kubectl get broken")

    assert (done.returncode, done.stdout) == (3, "half\n")
