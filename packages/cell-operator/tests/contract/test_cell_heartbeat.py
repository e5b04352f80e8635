"""The heartbeat on a simulated hub: when a cell renews its Lease, and when it does not."""

from __future__ import annotations

import logging

import pytest
from cell_builders.documents import CELL_NAME, a_deployment_document
from cell_builders.rights import ABROAD
from cell_builders.world import HUB_SETTINGS, Process, World, play, settings_of

from compute_api_types import names
from compute_cell_operator.heartbeat import HEARTBEATS, BeatResult
from compute_cell_operator.planes import CELL, HUB, INSTANCE
from compute_operator_kit.apply.context import Leadership
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.process.leader import LEASE
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.history import Request
from compute_sim_planes.json_types import JsonObject as Manifest

NAME = names.derive_cell_lease(CELL_NAME)


class NotLeading:
    """Another replica leads."""

    @property
    def is_leading(self) -> bool:
        return False


def beating(world: World, leadership: Leadership | None = None, name: str = "operator") -> Process:
    federation: JsonObject = {**HUB_SETTINGS, "heartbeat": "15s"}
    return world.process(name, settings_of(federation=federation), leadership)


async def lease(world: World) -> JsonObject:
    one = await world.find(HUB, LEASE, NAME, names.CELL_LEASES)
    assert one is not None
    return one


def renewals(world: World, name: str = "operator") -> list[Request]:
    return [one for one in world.writes(name, plane=HUB) if one.address.resource == "leases"]


def counted(process: Process, result: BeatResult) -> float:
    return process.measures.counts.get((HEARTBEATS, (("result", result.value),)), 0)


@pytest.mark.spec("DS-09")
def test_a_cell_renews_its_lease_once_per_interval_and_writes_nothing_else() -> None:
    async def scenario(world: World) -> None:
        process = beating(world)
        process.start()
        await world.sleep(20)
        assert member_object(await lease(world), "spec")["holderIdentity"] == CELL_NAME
        assert member_object(await lease(world), "spec")["leaseDurationSeconds"] == 60
        first = len(renewals(world))
        await world.sleep(600)
        assert 36 <= len(renewals(world)) - first <= 45  # 15 s ± 10 %
        assert {one.address.verb for one in renewals(world)} == {"update"}
        assert all(one.status == 200 for one in renewals(world))
        assert len(world.writes(plane=HUB)) == len(renewals(world))
        assert counted(process, BeatResult.OK) == len(renewals(world))

    play(scenario)


@pytest.mark.spec("DS-09")
def test_a_cell_whose_own_plane_is_away_does_not_renew() -> None:
    async def scenario(world: World) -> None:
        process = beating(world)
        process.start()
        await world.sleep(60)
        world.links[CELL].cut()
        await world.sleep(30)
        stopped = len(renewals(world))
        await world.sleep(120)
        assert len(renewals(world)) == stopped
        assert counted(process, BeatResult.WITHHELD) > 0
        world.links[CELL].heal()
        await world.sleep(60)
        assert len(renewals(world)) > stopped

    play(scenario)


@pytest.mark.spec("DS-09")
def test_a_cell_does_not_renew_before_every_instance_had_a_pass() -> None:
    async def scenario(world: World) -> None:
        await world.federate()
        world.start_neighbours()
        first = beating(world)
        first.start()
        await world.create(CELL, a_deployment_document("web", 2))
        await world.eventually(world.is_converged)
        await world.sleep(60)
        await first.stop()
        world.links[HUB].cut()  # no pass of write-back can end
        beating(world, name="again").start()
        await world.sleep(60)
        assert renewals(world, "again") == []
        world.links[HUB].heal()
        await world.sleep(90)
        renewal = next(one for one in renewals(world, "again") if one.status == 200)
        lists = [
            one
            for one in world.requests("again")
            if one.address.resource == INSTANCE.plural and one.address.plane == HUB
        ]
        assert min(one.begun for one in lists if one.status == 200) < renewal.begun

    play(scenario)


@pytest.mark.spec("DS-09")
def test_a_process_that_does_not_lead_does_not_renew() -> None:
    async def scenario(world: World) -> None:
        beating(world, NotLeading()).start()
        await world.sleep(120)
        assert renewals(world) == []

    play(scenario)


@pytest.mark.spec("DS-10")
def test_a_hub_without_the_lease_is_warned_of_once_and_asked_every_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)

    async def scenario(world: World) -> None:
        await world.delete(HUB, LEASE, NAME, names.CELL_LEASES)
        process = beating(world)
        process.start()
        await world.sleep(600)
        assert renewals(world) == []
        assert 9 <= counted(process, BeatResult.REFUSED) <= 13
        said = [one for one in caplog.records if one.getMessage().startswith("No heartbeat")]
        assert len(said) == 1
        missing: Manifest = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NAME, "namespace": names.CELL_LEASES},
        }
        await apply_manifests(world.planes[HUB].connect(), [missing])
        await world.sleep(90)
        assert renewals(world)

    play(scenario)


@pytest.mark.spec("DS-09")
def test_a_lease_that_another_client_changed_is_renewed_all_the_same() -> None:
    async def scenario(world: World) -> None:
        process = beating(world)
        process.start()
        await world.sleep(20)
        by_hand: JsonObject = {"metadata": {"labels": {"by": "hand"}}}
        await world.patch(HUB, LEASE, NAME, by_hand, names.CELL_LEASES)
        await world.sleep(20)
        assert (
            member_object(member_object(await lease(world), "metadata"), "labels")["by"] == "hand"
        )
        assert renewals(world)[-1].status == 200
        assert counted(process, BeatResult.UNAVAILABLE) == 0

    play(scenario)


@pytest.mark.spec("DS-13")
def test_a_cell_can_neither_create_nor_delete_a_lease_nor_touch_that_of_another() -> None:
    async def scenario(world: World) -> None:
        way = world.way(HUB, ABROAD)
        place = f"/apis/coordination.k8s.io/v1/namespaces/{names.CELL_LEASES}/leases"
        for method, target in (
            ("GET", place),
            ("GET", f"{place}/compute-cell-other"),
            ("PUT", f"{place}/compute-cell-other"),
            ("POST", place),
            ("DELETE", f"{place}/{NAME}"),
            ("DELETE", f"{place}/compute-cell-other"),
        ):
            answer = await way.request(method, target, {"Content-Type": "application/json"}, b"{}")
            await answer.close()
            assert answer.status == 403, (method, target)
        world.witness.refused.clear()  # on purpose

    play(scenario)
