"""One API server, one node, one of our images; the machine is unchanged afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness.access.waiting import until
from e2e.harness.node import leftovers, reserving
from e2e.harness.node.nodes import Nodes
from e2e.harness.planes.topology import SINGLE
from e2e.harness.stack.stack import Options, RealPlanes
from e2e.harness.testing.helpers import pids_with, wait_for

ROOT = Path(__file__).parents[5]
IMAGE = ROOT / ".images" / "cell-operator" / "image.tar"
NAME = "localhost/compute-cell-operator:dev"
STAY = """
import asyncio, sys
from pathlib import Path
from e2e.harness.node.nodes import Nodes
from e2e.harness.stack.stack import Options, RealPlanes
from e2e.harness.planes.topology import SINGLE

async def main():
    nodes = Nodes({"single": [Path(sys.argv[2])]})
    async with RealPlanes(SINGLE, Options(nodes=nodes, folder=Path(sys.argv[1]))) as planes:
        await planes.kubectl("run", "stays", "--image=localhost/compute-pause:1")
        while "Running" not in await planes.kubectl("get", "pods"):
            await asyncio.sleep(0.2)
        print("up", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def lines_of(*command: str) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {f"{command[0]}: {line}" for line in done.stdout.splitlines()}


def snapshot() -> set[str]:
    """Everything on the machine that a node could leave behind."""
    rules = {line for line in lines_of("iptables-save") if not line.startswith("iptables-save: #")}
    mounts = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    groups = {f"cgroup {path}" for root in leftovers.hierarchies() for path in root.glob("ic*")}
    return {
        *(f"mount {line}" for line in mounts),
        *lines_of("ip", "-oneline", "link"),
        *lines_of("ip", "-oneline", "-4", "address"),
        *lines_of("ip", "route"),
        *rules,
        *lines_of("lsns", "--noheadings", "--type", "net", "--output", "NS"),
        *groups,
    }


@pytest.fixture
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    before = snapshot()
    yield
    assert leftovers.find_all() == []
    assert pids_with(str(tmp_path)) == []
    assert snapshot() - before == set()


@pytest.mark.usefixtures("nothing_is_left")
async def test_a_pod_runs_from_an_image_of_ours_and_nothing_is_left(tmp_path: Path) -> None:
    nodes = Nodes({"single": [IMAGE]})
    options = Options(nodes=nodes, folder=tmp_path / "run")
    async with RealPlanes(SINGLE, options) as planes, planes.guard():
        await planes.kubectl("run", "says", "--restart=Never", f"--image={NAME}", "--", "--version")
        asked = ("get", "pod", "says", "-o", "jsonpath={.status.phase}")

        async def has_ended() -> str:
            phase = await planes.kubectl(*asked)
            return phase if phase in {"Succeeded", "Failed"} else ""

        assert await until("the pod to end", has_ended, check=planes.check) == "Succeeded"
        assert "compute-cell-operator" in await planes.kubectl("logs", "says")
        assert leftovers.find_all()
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("nothing_is_left")
async def test_a_rebooted_node_runs_its_pods_again(tmp_path: Path) -> None:
    nodes = Nodes({"single": []})
    options = Options(nodes=nodes, folder=tmp_path / "run")
    async with RealPlanes(SINGLE, options) as planes, planes.guard():
        await planes.kubectl("run", "stays", "--image=localhost/compute-pause:1")
        await planes.kubectl("wait", "pod/stays", "--for=condition=Ready", "--timeout=60s")
        await nodes["single"].reboot()
        counted = ("get", "pod", "stays", "-o", "jsonpath={.status.containerStatuses[0]}")

        async def is_up_again() -> bool:
            statuses = await planes.kubectl(*counted)
            return '"restartCount":1' in statuses and '"started":true' in statuses

        await until("the pod to run again", is_up_again, check=planes.check)


@pytest.mark.usefixtures("nothing_is_left")
def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-c", STAY, str(run), str(IMAGE)]
    killed = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "up\n"
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    wait_for(lambda: not pids_with(str(run)))
    assert leftovers.find_all()
    assert run.exists()
    for held in reserving.reserve(0):
        held.release()
    assert not run.exists()
