from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Protocol

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.programs.binaries import NODES, PLANES
from e2e.harness.programs.build import FREE_PER_BINARY, explain_failure, refuse_a_full_disk
from e2e.harness.programs.store import Store
from e2e.harness.testing.helpers import wait_for


class BuildCommand(Protocol):
    """The fixture of the conftest."""

    @property
    def cache(self) -> Path: ...
    @property
    def store(self) -> Store: ...
    def start(self, *arguments: str, **settings: str) -> subprocess.Popen[str]: ...
    def run(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]: ...
    def go_calls(self) -> list[str]: ...


def files_in(store: Store) -> list[str]:
    return sorted(path.name for path in store.folder.rglob("*") if path.is_file())


def test_build_makes_every_program_and_counts_them(build_command: BuildCommand) -> None:
    done = build_command.run("build")
    assert done.returncode == 0, done.stderr
    assert build_command.store.missing(PLANES) == []
    assert build_command.store.missing(NODES) == list(NODES)
    assert "[1/8] building etcd ..." in done.stdout
    assert "[8/8] built karmada-scheduler in " in done.stdout
    assert files_in(build_command.store) == sorted(["build.lock", *(b.name for b in PLANES)])


def test_nodes_programs_are_built_on_request(build_command: BuildCommand) -> None:
    assert build_command.run("build", "--nodes").returncode == 0
    assert build_command.store.missing((*PLANES, *NODES)) == []


def test_second_run_asks_go_nothing(build_command: BuildCommand) -> None:
    build_command.run("build")
    calls = build_command.go_calls()
    again = build_command.run("build")
    assert again.returncode == 0
    assert build_command.go_calls() == calls


def test_go_builds_static_reproducible_programs(build_command: BuildCommand) -> None:
    build_command.run("build")
    assert all(
        call.startswith("build -trimpath -buildvcs=false") for call in build_command.go_calls()
    )
    assert all("-ldflags -s -w" in call for call in build_command.go_calls())


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ('go: x: Get "https://p/x": dial tcp: lookup p: no such host', "GOPROXY"),
        ("x@v1: reading https://p/x: 403 Forbidden", "GOPROXY"),
        ("link: write /tmp/a.out: no space left on device", "free 7 GB"),
        ("main.go:1: syntax error", "go clean -cache"),
    ],
)
def test_failed_build_prints_a_remedy_and_leaves_nothing(
    build_command: BuildCommand, output: str, remedy: str
) -> None:
    failed = build_command.run("build", FAKE_GO_SAYS=output)
    assert failed.returncode == 1
    assert failed.stderr.startswith("building etcd: ")
    assert remedy in failed.stderr
    assert output[-20:] in failed.stderr
    assert "Traceback" not in failed.stderr
    assert files_in(build_command.store) == ["build.lock"]


def test_interrupted_build_leaves_nothing_half_made(build_command: BuildCommand) -> None:
    with build_command.start("build", FAKE_GO_HANGS="1") as running:
        wait_for(build_command.go_calls)
        wait_for(lambda: any(".part-" in name for name in files_in(build_command.store)))
        running.send_signal(signal.SIGINT)
        complained = running.communicate(timeout=30)[1]
    assert running.returncode == 130
    assert complained == "interrupted; nothing half-made is left\n"
    assert files_in(build_command.store) == ["build.lock"]


def test_build_killed_in_the_middle_does_not_count_and_is_cleaned_up_by_the_next(
    build_command: BuildCommand,
) -> None:
    with build_command.start("build", "--nodes", FAKE_GO_HANGS="1") as running:
        wait_for(lambda: any(".part-" in name for name in files_in(build_command.store)))
        running.kill()
    # Left by a build of a program that the next one does not need.
    (build_command.store.path_of(PLANES[0]).parent / ".part-other").touch()
    assert build_command.store.missing(PLANES) == list(PLANES)
    assert build_command.run("build").returncode == 0
    assert not any(".part-" in name for name in files_in(build_command.store))


def test_two_builds_at_once_build_each_program_once(build_command: BuildCommand) -> None:
    with build_command.start("build", FAKE_GO_TAKES="0.1") as first:
        wait_for(build_command.go_calls)
        second = build_command.run("build")
        first.communicate(timeout=30)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "another build is under way" in second.stdout
    assert len(build_command.go_calls()) == len(PLANES)


def test_cache_folder_that_cannot_be_written_is_one_line(build_command: BuildCommand) -> None:
    build_command.cache.touch()
    refused = build_command.run("build")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "point XDG_CACHE_HOME at a folder that is" in refused.stderr


def test_error_of_planes_without_programs_names_the_build_command(
    build_command: BuildCommand,
) -> None:
    refused = build_command.run("up", "--topology", "single")
    assert refused.returncode == 1
    assert "etcd, kube-apiserver" in refused.stderr
    assert refused.stderr.endswith("run `nox -s planes` first\n")


def test_disk_without_room_is_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    refuse_a_full_disk(8, 8 * FREE_PER_BINARY, tmp_path)
    with pytest.raises(
        PlanesError, match=r"preparing to build 8 programs: 100 MB free .* free 7 GB"
    ):
        refuse_a_full_disk(8, 100 * 1024**2, tmp_path)


def test_progress_lines_are_not_mistaken_for_a_refusal() -> None:
    failure = explain_failure("etcd", "go: downloading x v1 from dial tcp\nmain.go:1: broken")
    assert "GOPROXY" not in str(failure)
    assert "main.go:1: broken" in failure.detail
