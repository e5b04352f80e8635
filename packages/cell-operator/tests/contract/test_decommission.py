"""The command for a cell that never returns, under exactly the rights that `deploy/` gives it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from cell_builders.documents import CELL_NAME, NS, a_namespace_document
from cell_builders.milo import SERVER, Gateway, ProjectDoor
from cell_builders.quota_scenes import begin, claims, make_claim, milo_of
from cell_builders.rights import PERSON, decommission_roles, person_rights
from cell_builders.world import World, play, uid_of

from compute_api_types import names
from compute_cell_operator.decommission.command import Command, decommission
from compute_cell_operator.decommission.removal import RemovalDeps
from compute_cell_operator.planes import HUB, INSTANCE
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.core.keys import Role
from compute_operator_kit.process.leader import LEASE
from compute_operator_kit.process.lifecycle import ExitCode
from compute_quota_client import QuotaClient
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.client.rest import Resource
from compute_sim_planes.crds import load_crds
from compute_sim_planes.faults.injection import CrashableProcess, FaultyTransport
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import RecordingTransport
from compute_sim_planes.json_types import JsonObject

LEASE_NAME: Final = names.derive_cell_lease(CELL_NAME)
CELL_LABEL: Final = "compute.datumapis.com/cell"
SECONDS: Final = timedelta(seconds=4)
CLUSTERS: Final = Resource(
    "cluster.karmada.io", "v1alpha1", "clusters", "Cluster", is_namespaced=False
)


class Person:
    """A user with role G, at a terminal."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lines: list[str] = []

    async def run(
        self, *, is_executed: bool = False, cell: str = CELL_NAME, projects: tuple[str, ...] = ()
    ) -> ExitCode:
        self.lines = []
        command = Command(cell, Path("hub"), Path("quota"), projects, is_executed)
        async with QuotaClient(SERVER, transport=Gateway(self._project)) as quota:
            means = RemovalDeps(self._hub(), quota, self._world.clock, self.lines.append)
            return await decommission(command, means)

    def _hub(self) -> KubeClient:
        world = self._world
        faulty = FaultyTransport(
            world.planes[HUB].connect(PERSON), world.injector, plane=HUB, kinds=world.kind_names
        )
        transport = RecordingTransport(
            faulty, world.history, plane=HUB, identity=PERSON.name, kinds=world.kind_names
        )
        connection = RestConfig(HUB, Role.HUB, transport, FlowControl(HUB, world.clock))
        return HttpKubeClient(connection, FieldOwner("decommission", "compute-cell-operator"))

    def _project(self, name: str) -> RecordingTransport:
        world = self._world
        faulty = FaultyTransport(
            ProjectDoor(milo_of(world).milo, name, PERSON),
            world.injector,
            plane=name,
            kinds=world.kind_names,
            process=CrashableProcess(PERSON.name),
        )
        return RecordingTransport(
            faulty, world.history, plane=name, identity=PERSON.name, kinds=world.kind_names
        )


async def a_lost_cell(world: World) -> Person:
    """Two Instances with copies and claims, no operator, and no Karmada Cluster of the cell."""
    process = await begin(world, 2)
    await world.eventually(lambda: world.has_copies("web-0", "web-1"))
    await process.kill()
    hub, root = world.planes[HUB], milo_of(world).milo.planes.root
    await apply_manifests(hub.connect(), [*load_crds("karmada"), *decommission_roles("hub")])
    await apply_manifests(root.connect(), decommission_roles("root"))
    return Person(world)


def written(world: World) -> list[str]:
    return [
        f"{one.address.plane} {one.address.verb} {one.address.key}"
        for one in world.writes(PERSON.name)
    ]


@pytest.mark.spec("C-97", "DS-12")
def test_a_dry_run_lists_everything_and_writes_nothing() -> None:
    async def scenario(world: World) -> None:
        person = await a_lost_cell(world)
        assert await person.run() is ExitCode.CLEAN
        copies = [await world.copy(name) for name in ("web-0", "web-1")]
        found = await claims(world)
        lease = await world.get(HUB, LEASE, LEASE_NAME, names.CELL_LEASES)
        assert person.lines == [
            *(
                f"hub {NS}/web-{number} {uid_of(copy)} would delete"
                for number, copy in enumerate(copies)
            ),
            *(
                f"acme shop/instance-web-{number} {uid_of(found[f'instance-web-{number}'])}"
                " would delete"
                for number in range(2)
            ),
            f"hub {names.CELL_LEASES}/{LEASE_NAME} {uid_of(lease)} would delete",
            "copies: 2 would delete, 0 failed",
            "claims: 2 would delete, 0 failed",
            "leases: 1 would delete, 0 failed",
        ]
        assert written(world) == []

    play(scenario, has_networking=False)


@pytest.mark.spec("C-97", "DS-12", "S2")
@pytest.mark.fault("D5")
def test_executed_it_removes_exactly_what_the_cell_left_and_a_second_run_finds_nothing() -> None:
    async def scenario(world: World) -> None:
        person = await a_lost_cell(world)
        await make_claim(world, "instance-api-0", cell="ord-1", uid="theirs")
        await make_claim(world, "instance-own-0", cell="", uid="a tenant's")
        other = await world.copy("web-0")
        kept: JsonObject = {
            **other,
            "metadata": {
                "name": "api-0",
                "namespace": NS,
                "labels": {"compute.datumapis.com/cell": "ord-1"},
            },
        }
        await world.create(HUB, kept)
        assert await person.run(is_executed=True) is ExitCode.CLEAN
        assert [line.rpartition(" ")[2] for line in person.lines[:5]] == ["deleted"] * 5
        assert LEASE_NAME in person.lines[4]  # the last
        assert person.lines[5:] == [
            "copies: 2 deleted, 0 failed",
            "claims: 2 deleted, 0 failed",
            "leases: 1 deleted, 0 failed",
        ]
        assert await world.copies() == ["api-0"]
        assert sorted(await claims(world)) == ["instance-api-0", "instance-own-0"]
        assert await person.run(is_executed=True) is ExitCode.CLEAN
        assert person.lines == [
            "copies: 0 deleted, 0 failed",
            "claims: 0 deleted, 0 failed",
            "leases: 0 deleted, 0 failed",
        ]
        assert len(written(world)) == 5

    done = play(scenario, has_networking=False)
    # `play` fails on what was refused; what ships and is not needed is too much.
    assert done.world.witness.find_unused(person_rights(), PERSON.name) == []


@pytest.mark.spec("C-97")
def test_every_deletion_carries_the_uid_that_was_listed() -> None:
    async def scenario(world: World) -> None:
        person = await a_lost_cell(world)
        # Between list and delete a copy of the same name is made anew, by another cell.
        at = Point(plane=HUB, verb="delete", kind=INSTANCE.kind, key=f"{NS}/web-0")
        slow = Parameters(delay=SECONDS)
        world.injector.arm(Fault("slow", Action.DELAY, at, slow))
        running = asyncio.create_task(person.run(is_executed=True), name="person")
        await world.sleep(2)
        before = await world.copy("web-0")
        await world.delete(HUB, INSTANCE, "web-0")
        metadata: JsonObject = {"name": "web-0", "namespace": NS, "labels": {CELL_LABEL: "ord-1"}}
        made = await world.create(HUB, {**before, "metadata": metadata})
        assert await running is ExitCode.FATAL
        assert uid_of(await world.copy("web-0")) == uid_of(made)
        assert "failed: " in person.lines[0]
        assert await world.copies() == ["web-0"]

    play(scenario, has_networking=False)


@pytest.mark.spec("C-97")
@pytest.mark.parametrize("is_executed", [False, True])
def test_it_refuses_while_the_cluster_exists(is_executed: bool) -> None:
    async def scenario(world: World) -> None:
        person = await a_lost_cell(world)
        cluster: JsonObject = {
            "apiVersion": CLUSTERS.api_version,
            "kind": CLUSTERS.kind,
            "metadata": {"name": CELL_NAME},
            "spec": {"syncMode": "Push"},
        }
        await apply_manifests(world.planes[HUB].connect(), [cluster])
        assert await person.run(is_executed=is_executed) is ExitCode.REFUSED
        assert person.lines == [
            "refused: Cluster 'dfw-1' exists; delete it first, if the cell never returns"
        ]
        assert written(world) == []
        assert len(await claims(world)) == 2

    play(scenario, has_networking=False)


@pytest.mark.spec("C-97")
@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (503, ""), (404, "")])
def test_it_refuses_while_the_cluster_cannot_be_read(status: int, reason: str) -> None:
    """A 404 that names no object is a server without the kind, not a Cluster that is gone."""

    async def scenario(world: World) -> None:
        person = await a_lost_cell(world)
        at = Point(plane=HUB, verb="get", times=0)
        fault = Fault("hub", Action.ERROR, at, Parameters(status=status, reason=reason))
        world.injector.arm(fault)
        assert await person.run(is_executed=True) is ExitCode.REFUSED
        assert person.lines[0].startswith("refused: Cluster 'dfw-1' cannot be read: ")
        assert written(world) == []

    play(scenario, has_networking=False)


@pytest.mark.spec("C-97")
def test_one_unreadable_project_does_not_keep_the_others() -> None:
    async def scenario(world: World) -> None:
        person = await a_lost_cell(world)
        await milo_of(world).milo.add_project("other")
        at = Point(plane="other", verb="list", times=0)
        world.injector.arm(Fault("other", Action.ERROR, at, Parameters(status=403)))
        assert await person.run(is_executed=True, projects=("other",)) is ExitCode.FATAL
        assert await claims(world) == {}
        assert await world.copies() == []
        failed = [line for line in person.lines if line.startswith("other ")]
        assert len(failed) == 1
        assert "failed: " in failed[0]
        assert person.lines[-2] == "claims: 2 deleted, 1 failed"

    play(scenario, has_networking=False)


@pytest.mark.spec("C-97")
@pytest.mark.fault("B6")
@pytest.mark.parametrize(("times", "code"), [(2, ExitCode.CLEAN), (0, ExitCode.FATAL)])
def test_a_list_that_expires_begins_again_a_few_times(times: int, code: ExitCode) -> None:
    async def scenario(world: World) -> None:
        person = await a_lost_cell(world)
        at = Point(plane=HUB, verb="list", kind="Instance", times=times)
        expired = Parameters(status=410, reason="Expired")
        world.injector.arm(Fault("expired", Action.ERROR, at, expired))
        assert await person.run() is code

    play(scenario, has_networking=False)


@pytest.mark.spec("C-97")
def test_a_hub_namespace_without_a_legible_identity_is_reported_and_incomplete() -> None:
    async def scenario(world: World) -> None:
        person = await a_lost_cell(world)
        odd = a_namespace_document("ns-11111111-2222-4333-8444-555555555555")
        metadata = odd["metadata"]
        assert isinstance(metadata, dict)
        metadata["labels"] = {}
        await world.create(HUB, odd)
        assert await person.run() is ExitCode.FATAL
        assert person.lines[-2] == "claims: 2 would delete, 1 failed"
        told = [line for line in person.lines if "ns-11111111" in line]
        assert len(told) == 1
        assert "failed: " in told[0]

    play(scenario, has_networking=False)


@pytest.mark.spec("C-97")
def test_a_copy_outside_of_hub_namespaces_is_not_listed() -> None:
    async def scenario(world: World) -> None:
        person = await a_lost_cell(world)
        await world.create(HUB, a_namespace_document("elsewhere"))
        copy = await world.copy("web-0")
        metadata: JsonObject = {
            "name": "odd",
            "namespace": "elsewhere",
            "labels": {CELL_LABEL: CELL_NAME},
        }
        await world.create(HUB, {**copy, "metadata": metadata})
        assert await person.run(is_executed=True) is ExitCode.CLEAN
        assert await world.exists(HUB, INSTANCE, "odd", "elsewhere")

    play(scenario, has_networking=False)
