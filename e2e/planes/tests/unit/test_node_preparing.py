from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e.planes.errors import PlanesError
from e2e.planes.node import __main__ as command
from e2e.planes.node import machine, preparing

REPOSITORY = Path(__file__).parents[4]


def test_packages_are_those_of_the_page() -> None:
    page = (REPOSITORY / "docs" / "spec" / "in-cluster.md").read_text("utf-8")
    listed = page.partition("Debian packages: `")[2].partition("`")[0].split()
    # What every Debian has need not be named there.
    assert set(machine.PACKAGES) - {"util-linux", "mount"} == set(listed)


def test_packages_are_installed_without_a_question() -> None:
    ran: list[Sequence[str]] = []
    preparing.install(["runc", "buildah"], ran.append)
    assert [words[:2] for words in ran] == [["apt-get", "update"], ["apt-get", "install"]]
    assert {"--yes", "runc", "buildah"} <= set(ran[1])


def test_a_package_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    program = tmp_path / "apt-get"
    program.write_text(
        "#!/bin/sh\necho 'E: Unable to locate package runc' >&2\nexit 100\n", "utf-8"
    )
    program.chmod(0o755)
    with pytest.raises(PlanesError, match="Unable to locate package runc"):
        preparing.run([str(program), "install", "runc"])


def test_a_machine_without_packages_is_told_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert command.main(["prepare"]) == command.IMPOSSIBLE
    said = capsys.readouterr().out
    assert said.startswith("in-cluster: not run: preparing nodes: not installed: ")
    assert "containerd" in said
    assert said.count("\n") == 1


def test_a_user_who_is_not_root_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert command.main(["prepare"]) == command.IMPOSSIBLE
    assert capsys.readouterr().out == (
        "in-cluster: not run: preparing nodes: this user is not root; run it as root\n"
    )


def test_a_kernel_that_refuses_is_told_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "unshare"
    refusing.write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine, "missing_packages", list[str])
    (first, *_) = machine.find_problems()
    assert "Operation not permitted" in str(first)
    assert "namespaces" in str(first)


def test_a_kernel_that_never_answers_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("unshare", 20)

    monkeypatch.setattr(subprocess, "run", hang)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine, "missing_packages", list[str])
    (first, *_) = machine.find_problems()
    assert "no answer within 20 s" in str(first)
