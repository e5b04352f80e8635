from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.node import __main__ as command
from e2e.harness.node import machine, preparing
from e2e.harness.node.inotify import count_free
from e2e.harness.node.machine import Machine

REPOSITORY = Path(__file__).parents[4]


def test_packages_are_those_of_the_page() -> None:
    page = (REPOSITORY / "docs" / "spec" / "in-cluster.md").read_text("utf-8")
    listed = page.partition("Debian packages: `")[2].partition("`")[0].split()
    # Packages of every Debian need not be listed there.
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


def a_machine(
    *,
    is_root: bool = True,
    missing: tuple[str, ...] = (),
    refusal_of: Callable[[str], str] = lambda _: "",
    watchers: int = machine.WATCHERS,
) -> Machine:
    return Machine(is_root, missing, refusal_of, watchers)


def test_missing_packages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # nor is there an apt-get
    missing = tuple(machine.missing_packages())
    assert command.main(["prepare"], lambda: a_machine(missing=missing)) == command.IMPOSSIBLE
    output = capsys.readouterr().out
    assert output.startswith("in-cluster: not run: preparing nodes: not installed: ")
    assert "containerd" in output
    assert output.count("\n") == 1


def test_a_user_without_root_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    asked = command.main(["prepare"], lambda: a_machine(is_root=False, missing=("runc",)))
    assert asked == command.IMPOSSIBLE
    assert capsys.readouterr().out == (
        "in-cluster: not run: preparing nodes: this user is not root; run it as root\n"
    )


def a_program(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces `unshare` by this script."""
    program = folder / "unshare"
    program.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_a_refusal_of_the_kernel_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_program(tmp_path, "echo 'unshare failed: Operation not permitted' >&2; exit 1", monkeypatch)
    (first, *_) = machine.find_problems(a_machine(refusal_of=machine.refusal_of))
    assert "Operation not permitted" in str(first)
    assert "namespaces" in str(first)


def test_a_kernel_that_never_answers_causes_a_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_program(tmp_path, "exec sleep 60", monkeypatch)
    impatient = partial(machine.refusal_of, patience=timedelta(milliseconds=100))
    (first, *_) = machine.find_problems(a_machine(refusal_of=impatient))
    assert "no answer within 0.1 s" in str(first)


def test_too_few_inotify_instances_are_an_error_with_a_remedy() -> None:
    with pytest.raises(PlanesError, match=r"by 20 more.*max_user_instances"):
        machine.check_machine(a_machine(watchers=20))
    machine.check_machine(a_machine(watchers=20), nodes=1)


def test_watchers_are_counted_up_to_what_is_wanted_and_given_back() -> None:
    assert count_free(0) == 0
    before = len([*Path("/proc/self/fd").iterdir()])
    assert count_free(3) == 3
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_machine_that_lacks_nothing_is_fit() -> None:
    machine.check_machine(a_machine())
