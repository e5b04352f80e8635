"""kubectl on the demo's planes: columns, waits, and events in the order of what happened."""

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
from e2e.demo.backend import PROJECT_NAMESPACES, UserClient
from e2e.demo.environment import EmbeddedEnvironment
from e2e.harness.stack.kubectl import NO_KUBECTL, find_kubectl
from e2e.world.documents import a_placement, a_workload
from e2e.world.kinds import INSTANCE, NAMESPACE, WORKLOAD
from e2e.world.objects import condition_of, name_of, text_at, uid_of
from e2e.world.port import DFW

PLACE = PROJECT_NAMESPACES[0]
CELL = DFW.name
PATIENCE = 120


@dataclass(frozen=True)
class Kubectl:
    program: Path
    environment: EmbeddedEnvironment

    async def __call__(self, context: str, *words: str) -> str:
        # In a thread: asyncio's subprocesses leave a thread running for a moment on Python 3.11.
        done = await asyncio.to_thread(
            subprocess.run,
            [str(self.program), "--context", context, *words],
            env={
                "KUBECONFIG": str(self.environment.kubeconfig),
                "HOME": str(self.environment.run.path / "tmp"),
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
        described = await self(context, "describe", *words)
        table = described.partition("\nEvents:")[2]
        return re.findall(r"^\s+(?:Normal|Warning)\s+(\w+)", table, re.MULTILINE)


@pytest_asyncio.fixture
async def kubectl() -> AsyncIterator[Kubectl]:
    """Planes and operators, and a Workload that was restarted once."""
    program = find_kubectl()
    if program is None:
        pytest.skip(NO_KUBECTL)
    async with EmbeddedEnvironment(_no_progress) as environment:
        kubectl = Kubectl(program, environment)
        project = UserClient(environment, PLACE.project, PLACE.namespace)
        await environment.set_grant(PLACE.project, 100)
        await project.create(a_workload("web", a_placement("us", "DFW", replicas=2)))
        await kubectl(PLACE.project, *_wait_for("workload/web"))
        restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
        await project.patch(WORKLOAD, "web", {"spec": {"template": restart}})
        # The old condition is valid until the operator has observed the new generation.
        await kubectl(PLACE.project, *_wait_for("workload/web"))
        # The projection reaches the project later than the status that counts it.
        await _until_shown(project, UserClient(environment, CELL))
        yield kubectl


def _no_progress(done: int, total: int, what: str) -> None:
    """Progress, which a test does not show."""


async def _until_shown(project: UserClient, cell: UserClient) -> None:
    for _ in range(10 * PATIENCE):
        if await _shown(project) == await _running(cell):
            return
        await asyncio.sleep(0.1)
    pytest.fail("the project does not show what runs in the cell")


async def _running(cell: UserClient) -> set[str]:
    return {uid_of(one) for one in await cell.list(INSTANCE)}


async def _shown(project: UserClient) -> set[str]:
    """UIDs in the cell of the Instances that the project shows as Ready."""
    return {
        text_at(one, "metadata", "annotations", labels.INSTANCE_UID)
        for one in await project.list(INSTANCE)
        if condition_of(one, "Ready").status == "True"
    }


def _wait_for(what: str) -> tuple[str, ...]:
    return ("wait", "--for=condition=Ready", what, f"--timeout={PATIENCE}s")


async def _hub_namespace(kubectl: Kubectl) -> str:
    namespaces = await UserClient(kubectl.environment, PLACE.project).list(NAMESPACE)
    return next(f"ns-{uid_of(one)}" for one in namespaces if name_of(one) == PLACE.namespace)


async def test_kubectl_shows_columns_and_events_in_order(
    kubectl: Kubectl,
) -> None:
    project, namespace = PLACE.project, await _hub_namespace(kubectl)
    head, row = (await kubectl(project, "get", "workloads")).splitlines()
    assert head.split()[:4] == ["NAME", "AGE", "AVAILABLE", "REASON"]
    assert row.split()[2:] == ["True", "AvailablePlacementFound", *"12222", '["DFW"]']
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
    reasons = await kubectl.events_of(CELL, "--namespace", namespace, *instance)
    assert reasons[-1] == "QuotaGranted"
