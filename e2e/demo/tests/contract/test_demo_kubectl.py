"""kubectl as people use it: columns, waits, and events that tell the story in order."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from e2e.backends.port import DFW
from e2e.demo.howtos import find_kubectl
from e2e.demo.scene import PLACES, Hands
from e2e.demo.stage import Stage
from e2e.documents import a_placement, a_workload
from e2e.kinds import INSTANCE, NAMESPACE, WORKLOAD
from e2e.objects import condition_of, name_of, text_at, uid_of

PLACE = PLACES[0]
CELL = DFW.name
PATIENCE = 120


@dataclass(frozen=True)
class Kubectl:
    program: Path
    stage: Stage

    async def __call__(self, context: str, *words: str) -> str:
        # In a thread: asyncio's own subprocesses leave one behind for a moment on Python 3.11.
        done = await asyncio.to_thread(
            subprocess.run,
            [str(self.program), "--context", context, *words],
            env={
                "KUBECONFIG": str(self.stage.kubeconfig),
                "HOME": str(self.stage.run.path / "tmp"),
                "PATH": os.environ["PATH"],
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def events_of(self, context: str, *words: str) -> list[str]:
        """Reasons in the order in which `describe` shows them."""
        told = await self(context, "describe", *words)
        table = told.partition("\nEvents:")[2]
        return re.findall(r"^\s+(?:Normal|Warning)\s+(\w+)", table, re.MULTILINE)


@pytest_asyncio.fixture
async def kubectl() -> AsyncIterator[Kubectl]:
    """Planes and operators, and a Workload that was restarted once."""
    program = find_kubectl()
    if program is None:
        pytest.skip("no kubectl is to be had: `./dev planes` builds one")
    async with Stage(_tell_nobody) as stage:
        kubectl = Kubectl(program, stage)
        project = Hands(stage, PLACE.project, PLACE.namespace)
        await stage.set_grant(PLACE.project, 100)
        await project.create(a_workload("web", a_placement("us", "DFW", replicas=2)))
        await kubectl(PLACE.project, *_wait_for("workload/web"))
        restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
        await project.patch(WORKLOAD, "web", {"spec": {"template": restart}})
        # Until the operator has seen the change the former answer stands: generations tell.
        await kubectl(PLACE.project, *_wait_for("workload/web"))
        # Instances come to the project by another way than the status that counts them.
        await _until_shown(project, Hands(stage, CELL))
        yield kubectl


def _tell_nobody(done: int, total: int, what: str) -> None:
    """Nobody looks on."""


async def _until_shown(project: Hands, cell: Hands) -> None:
    for _ in range(10 * PATIENCE):
        if await _shown(project) == await _running(cell):
            return
        await asyncio.sleep(0.1)
    pytest.fail("the project does not show what runs in the cell")


async def _running(cell: Hands) -> set[str]:
    return {uid_of(one) for one in await cell.list(INSTANCE)}


async def _shown(project: Hands) -> set[str]:
    """Which of them the project shows as Ready, by what the cell calls them."""
    return {
        text_at(one, "metadata", "annotations", labels.INSTANCE_UID)
        for one in await project.list(INSTANCE)
        if condition_of(one, "Ready").status == "True"
    }


def _wait_for(what: str) -> tuple[str, ...]:
    return ("wait", "--for=condition=Ready", what, f"--timeout={PATIENCE}s")


async def _hub_namespace(kubectl: Kubectl) -> str:
    found = await Hands(kubectl.stage, PLACE.project).list(NAMESPACE)
    return next(f"ns-{uid_of(one)}" for one in found if name_of(one) == PLACE.namespace)


async def test_kubectl_shows_columns_and_events_that_tell_the_story_in_order(
    kubectl: Kubectl,
) -> None:
    project, namespace = PLACE.project, await _hub_namespace(kubectl)
    head, row = (await kubectl(project, "get", "workloads")).splitlines()
    assert head.split()[:4] == ["NAME", "AGE", "AVAILABLE", "REASON"]
    assert row.split()[2:] == ["True", "AvailablePlacementFound", *"12222"]
    head, row = (await kubectl(project, "get", "workloaddeployments")).splitlines()
    assert head.split()[-1] == "CITY"
    assert row.split()[2:] == ["True", "StableInstanceFound", *"2222", "DFW"]
    rows = (await kubectl(project, "get", "instances")).splitlines()[1:]
    assert [one.split()[0] for one in rows] == ["web-us-dfw-0", "web-us-dfw-1"]
    assert {one.split()[2] for one in rows} == {"True"}

    assert await kubectl.events_of(project, "workload", "web") == ["DeploymentCreated"]
    deployment = ("workloaddeployment", "web-us-dfw")
    assert await kubectl.events_of(project, *deployment) == ["Federated"]
    in_cell = await kubectl.events_of(CELL, "--namespace", namespace, *deployment)
    assert in_cell[0] == "Scaled"
    rolled = [reason for reason in in_cell if reason != "Scaled"]
    assert rolled[0] == "RolloutStarted"
    assert rolled[-1] == "RolloutCompleted"
    assert set(rolled[1:-1]) == {"InstanceReplaced"}
    instance = ("instance", "web-us-dfw-0")
    told = await kubectl.events_of(CELL, "--namespace", namespace, *instance)
    assert told[-1] == "QuotaGranted"
