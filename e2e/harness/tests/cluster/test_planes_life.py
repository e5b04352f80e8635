"""Separate stacks that are killed, starved and interrupted."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from compute_sim_planes.json_types import JsonObject
from e2e.harness.errors import PlanesError, ProcessDiedError
from e2e.harness.planes.topology import SINGLE
from e2e.harness.programs.binaries import PLANES
from e2e.harness.programs.store import Store
from e2e.harness.stack.stack import Options, RealPlanes
from e2e.harness.testing.helpers import is_running, pids_with, wait_for

ROOT = Path(__file__).parents[4]


def names_in(folder: Path) -> list[str]:
    return sorted(part.name for part in folder.iterdir())


def a_store_with_a_broken_api_server(folder: Path) -> Store:
    """The built programs, with an API server that exits at once."""
    store, users = Store(folder / "store"), Store.of_user()
    for binary in PLANES:
        program = store.path_of(binary)
        program.parent.mkdir(parents=True, exist_ok=True)
        if binary.name == "kube-apiserver":
            program.write_text("#!/bin/sh\necho no luck today\nexit 1\n", "utf-8")
            program.chmod(0o755)
        else:
            program.symlink_to(users.path_of(binary))
    return store


@pytest_asyncio.fixture
async def single(tmp_path: Path) -> AsyncIterator[RealPlanes]:
    async with RealPlanes(SINGLE, Options(folder=tmp_path / "run")) as planes:
        yield planes


async def test_end_leaves_no_process_no_port_and_no_folder(tmp_path: Path) -> None:
    async with RealPlanes(SINGLE, Options(folder=tmp_path / "run")) as planes:
        port = planes.plane("single").port
        assert len(pids_with(str(tmp_path))) == 3
    assert pids_with(str(tmp_path)) == []
    assert names_in(tmp_path) == []
    with socket.socket() as freed:
        freed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        freed.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    "name", ["etcd", "single.kube-apiserver", "single.kube-controller-manager"]
)
async def test_death_of_a_process_ends_the_guarded_block_with_its_name(
    single: RealPlanes, name: str
) -> None:
    victim = next(process for process in single.processes if process.name == name)

    async def body() -> None:
        async with single.guard():
            os.kill(victim.pid or 0, signal.SIGKILL)
            await asyncio.sleep(30)

    with pytest.raises(ProcessDiedError) as death:
        await body()
    assert death.value.process == name
    assert "killed by SIGKILL" in str(death.value)


async def test_block_that_ends_by_itself_is_not_disturbed(single: RealPlanes) -> None:
    async with single.guard():
        await asyncio.sleep(0)


async def test_guarded_block_that_is_cancelled_stays_cancelled(single: RealPlanes) -> None:
    async def body() -> None:
        async with single.guard():
            await asyncio.sleep(30)

    task = asyncio.create_task(body())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_port_taken_in_the_last_moment_is_one_line(single: RealPlanes) -> None:
    api_server, port = single.plane("single").api_server, single.plane("single").port
    await api_server.stop()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ProcessDiedError) as death:
        await api_server.up()
    expected = "single.kube-apiserver: its port was taken by another process; run again"
    assert str(death.value) == expected
    await api_server.stop()


async def test_failed_start_leaves_logs_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    planes = RealPlanes(SINGLE, Options(folder=folder), a_store_with_a_broken_api_server(tmp_path))
    with pytest.raises(ProcessDiedError) as death:
        await planes.start()
    assert death.value.process == "single.kube-apiserver"
    assert death.value.detail == "no luck today"
    assert death.value.__notes__ == [f"the logs of all processes are in {folder}"]
    assert names_in(folder) == ["audit", "logs"]
    assert pids_with(str(folder)) == []


async def test_refusal_of_a_plane_is_quoted(tmp_path: Path) -> None:
    nonsense: JsonObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "non.sense"},
        "spec": {},
    }
    folder = tmp_path / "run"
    with pytest.raises(PlanesError, match=r"bringing planes up: PATCH .* 422 Invalid"):
        await RealPlanes(SINGLE, Options(folder=folder, crds=(nonsense,))).start()
    assert pids_with(str(folder)) == []


async def test_programs_that_are_missing_leave_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(PlanesError, match="not built"):
        await RealPlanes(SINGLE, Options(folder=folder), Store(tmp_path / "empty")).start()
    assert not folder.exists()


async def test_cancelled_start_ends_what_it_started(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    starting = asyncio.create_task(RealPlanes(SINGLE, Options(folder=folder)).start())
    await asyncio.to_thread(wait_for, lambda: pids_with(f"{folder}/etcd"))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert pids_with(str(folder)) == []


def up(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "e2e.harness", "up", "--topology=single", f"--folder={folder}"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_up(running: subprocess.Popen[str]) -> None:
    assert running.stdout
    for line in running.stdout:
        if "Ctrl-C" in line:
            return
    raise AssertionError(running.communicate()[1])


def test_killed_parent_takes_every_process_along(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with up(folder) as running:
        wait_until_up(running)
        processes = [pid for pid in pids_with(str(folder)) if pid != running.pid]
        assert len(processes) == 3
        running.kill()
    wait_for(lambda: not any(is_running(pid) for pid in processes), within=10)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_takes_all_down_and_is_no_failure(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "run"
    with up(folder) as running:
        assert running.stdout
        first = running.stdout.readline()
        assert first == f"export KUBECONFIG={folder}/kubeconfig\n"
        assert running.stdout.readline() == "contexts: single\n"
        wait_until_up(running)
        running.send_signal(number)
        output, errors = running.communicate(timeout=20)
    assert (running.returncode, errors) == (0, "")
    assert output.startswith("down in ")
    assert not folder.exists()
    assert pids_with(str(folder)) == []


def test_process_that_dies_under_the_command_is_named_and_ends_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with up(folder) as running:
        wait_until_up(running)
        (etcd,) = pids_with(f"--data-dir={folder}/etcd")
        os.kill(etcd, signal.SIGKILL)
        complained = running.communicate(timeout=20)[1]
    assert running.returncode == 1
    assert complained.startswith("etcd: killed by SIGKILL; ")
    assert f"the logs of all processes are in {folder}\n" in complained
