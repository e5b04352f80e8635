"""A suspended deployment in a cell: its instances stop, and everything else of it stays."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Final

import pytest
from cell_builders.documents import a_deployment_document
from cell_builders.quota_scenes import (
    OFTEN,
    begin,
    claim_writes,
    claims,
    cut,
    drop_claim,
    enforcing,
    has_claims,
    heal,
    is_gated,
    milo_of,
    open_cell,
    quota_of,
    records,
    times,
)
from cell_builders.world import Process, World, condition_of, gates_of, play, status_of, uid_of

from compute_api_types import labels
from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NETWORK_BINDING
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    decode_json_object,
    member_list,
    member_object,
)
from compute_sim_planes.history import Commit
from compute_sim_planes.json_types import string_at
from compute_sim_planes.milo.kinds import BUCKETS, GRANTS

READY: Final = ("False", "Suspended", "Instance is suspended due to project suspension.")
AVAILABLE: Final = ("False", "Suspended", "Instance is suspended and not serving traffic.")
DAY: Final = 24 * 60


async def annotate(world: World, value: str | None, name: str = "web") -> None:
    """As Karmada delivers it."""
    patch: JsonObject = {"metadata": {"annotations": {labels.SUSPENDED: value}}}
    await world.patch(CELL, DEPLOYMENT, name, patch)


async def is_suspended(world: World, *names: str) -> bool:
    """These Instances, and they alone, exist and are suspended, and nothing of them runs."""
    if await world.instances() != sorted(names):
        return False
    found = [await world.instance(name) for name in names]
    if not all(status_of(one).get("suspended") is True for one in found):
        return False
    running = {uid_of(one) for one in found} & set(world.provider.pods)
    return not running and status_of(await world.deployment()).get("suspended") is True


async def suspend(world: World, *names: str) -> None:
    await annotate(world, "true")
    await world.eventually(lambda: is_suspended(world, *names), within=10)


async def uids(world: World) -> dict[str, str]:
    return {name: uid_of(await world.instance(name)) for name in await world.instances()}


async def claim_uids(world: World) -> dict[str, str]:
    return {name: uid_of(claim) for name, claim in (await claims(world)).items()}


async def binding_uids(world: World) -> list[str]:
    return sorted(uid_of(one) for one in await world.listed(CELL, NETWORK_BINDING))


async def buckets(world: World) -> list[tuple[str, Json]]:
    page = await milo_of(world).inside().list(BUCKETS)
    return [(string_at(one, "metadata", "name"), one.get("status")) for one in page.items]


@pytest.mark.spec("SU-06", "SU-07")
def test_suspended_instances_stop_and_the_same_ones_start_again() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 2)
        before = await uids(world), await claim_uids(world), await binding_uids(world)
        await suspend(world, "web-0", "web-1")
        await world.sleep(1)
        for name in ("web-0", "web-1"):
            instance = await world.instance(name)
            assert condition_of(instance, "Ready") == READY
            assert condition_of(instance, "Available") == AVAILABLE
            assert condition_of(instance, "Programmed")[0] == "True", "never touched"
            assert (await quota_of(world, name))[0] == "True"
        deployment = await world.deployment()
        for kind in ("Available", "ReplicasReady", "Ready"):
            message = "The project is suspended; 2 instance(s) are suspended"
            assert condition_of(deployment, kind) == ("False", "Suspended", message)
        assert status_of(deployment)["readyReplicas"] == 0
        assert status_of(deployment)["replicas"] == 2
        assert status_of(deployment)["updatedReplicas"] == 2
        assert process.reasons(kind=DEPLOYMENT).count("ProjectPaused") == 1
        await world.eventually(lambda: world.has_copies("web-0", "web-1"))
        await annotate(world, None)
        await world.eventually(world.is_converged)
        assert (await uids(world), await claim_uids(world), await binding_uids(world)) == before
        for name in ("web-0", "web-1"):
            assert "suspended" not in status_of(await world.instance(name))
        assert "suspended" not in status_of(await world.deployment())
        assert process.reasons(kind=DEPLOYMENT).count("ProjectResumed") == 1
        assert "PauseFailed" not in process.reasons()
        assert world.provider.violations == []

    play(scenario)


@pytest.mark.spec("SU-07")
def test_a_resumed_instance_says_that_it_starts_until_its_provider_reports() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await suspend(world, "web-0")
        await world.stop_neighbours()
        await annotate(world, None)
        await world.sleep(2)
        starting = ("False", "Starting", "Instance is being resumed")
        assert condition_of(await world.instance("web-0"), "Available") == starting
        assert condition_of(await world.instance("web-0"), "Ready") == starting
        world.start_neighbours()
        await world.eventually(world.is_converged)

    play(scenario)


@pytest.mark.spec("SU-07")
@pytest.mark.parametrize("value", ["True", "1", "", "yes", "false", "true "])
def test_any_other_value_of_the_annotation_is_none(value: str) -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await annotate(world, value)
        await world.sleep(10)
        assert await world.is_converged()
        assert "suspended" not in status_of(await world.instance("web-0"))
        assert len(world.provider.pods) == 1

    play(scenario, has_networking=False)


@pytest.mark.spec("SU-04")
def test_quota_is_the_same_before_and_after_a_suspension_with_less_quota() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2, quota=OFTEN)
        await world.sleep(60)
        granted = [await quota_of(world, name) for name in ("web-0", "web-1")]
        held, used = await claim_uids(world), await buckets(world)
        sent = len(claim_writes(world))
        await suspend(world, "web-0", "web-1")
        await milo_of(world).inside().delete(GRANTS, "grant")
        await milo_of(world).grant(times(1), "less")
        await world.sleep(600)
        assert [await quota_of(world, name) for name in ("web-0", "web-1")] == granted
        assert await claim_uids(world) == held
        await annotate(world, None)
        await world.eventually(world.is_converged)
        await world.sleep(120)
        assert [await quota_of(world, name) for name in ("web-0", "web-1")] == granted
        assert await claim_uids(world) == held
        assert len(claim_writes(world)) == sent, "no claim is released or made again"
        assert _used(await buckets(world)) == _used(used)

    play(scenario, has_networking=False)


def _used(found: list[tuple[str, Json]]) -> list[tuple[str, Json]]:
    return [
        (name, status.get("allocated") if isinstance(status, dict) else None)
        for name, status in found
    ]


@pytest.mark.spec("SU-04")
def test_a_lost_claim_is_made_again_only_after_the_resume() -> None:
    async def scenario(world: World) -> None:
        await begin(world, quota=OFTEN)
        await suspend(world, "web-0")
        sent = len(claim_writes(world))
        await drop_claim(world)
        await world.sleep(300)
        assert await claims(world) == {}
        assert len(claim_writes(world)) == sent
        assert (await quota_of(world))[0] == "True"
        await annotate(world, None)
        await world.eventually(has_claims(world, "instance-web-0"), within=60)
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


@pytest.mark.spec("SU-09")
def test_a_deployment_that_arrives_suspended_gets_its_instances_after_the_resume() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        document = a_deployment_document("web", 2)
        metadata = member_object(document, "metadata")
        metadata["annotations"] = {
            **member_object(metadata, "annotations"),
            labels.SUSPENDED: "true",
        }
        await world.create(CELL, document)
        await world.sleep(60)
        assert await world.instances() == []
        assert await world.listed(CELL, NETWORK_BINDING) == []
        found = await world.deployment()
        message = "The project is suspended; 0 instance(s) are suspended"
        assert condition_of(found, "Available") == ("False", "Suspended", message)
        assert status_of(found)["replicas"] == 0
        assert status_of(found)["desiredReplicas"] == 2
        await annotate(world, None)
        await world.eventually(world.is_converged)

    play(scenario)


@pytest.mark.spec("SU-09")
def test_an_instance_behind_its_gates_stays_there_although_its_claim_is_granted() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world, times(0))
        await world.deliver("web", 1)
        await world.eventually(lambda: world.says("QuotaNotGranted"))
        await annotate(world, "true")
        await world.eventually(lambda: world.says("Suspended"))
        await milo_of(world).grant(times(5), "further")
        await world.sleep(900)
        assert await is_gated(world)
        assert gates_of(await world.instance("web-0"))
        assert condition_of(await world.instance("web-0"), "Ready") == READY
        assert world.provider.started == []
        await annotate(world, None)
        await world.eventually(world.is_converged, within=400)
        assert world.provider.violations == []

    play(scenario)


@pytest.mark.spec("SU-09", "SU-10")
def test_edits_and_losses_wait_for_the_resume_and_are_done_one_at_a_time() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 3)
        await suspend(world, "web-0", "web-1", "web-2")
        made = len(world.writes("operator", plane=CELL, kind="Instance", verb="create"))
        before = await uids(world)
        await world.set_image("web", "2.0")
        await world.scale("web", 4)
        await world.delete(CELL, INSTANCE, "web-1")  # lost
        await world.sleep(300)
        assert await world.instances() == ["web-0", "web-2"]
        kept = await uids(world)
        assert {name: before[name] for name in kept} == kept
        writes = world.writes("operator", plane=CELL, kind="Instance", verb="create")
        assert len(writes) == made
        assert not world.writes("operator", plane=CELL, kind="Instance", verb="delete")
        assert len(await claims(world)) == 3, "the slots are wanted"
        await annotate(world, None)
        await world.eventually(world.is_converged, within=120)
        assert await world.instances() == [f"web-{n}" for n in range(4)]
        await world.eventually(records(world, "web-1"))

    done = play(scenario)
    assert done.world.provider.violations == []


@pytest.mark.spec("SU-09")
def test_scaling_down_and_deletion_go_on_while_suspended() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 3)
        await suspend(world, "web-0", "web-1", "web-2")
        await world.scale("web", 1)
        await world.eventually(lambda: world.has_instances("web-0"))
        await world.eventually(has_claims(world, "instance-web-0"), within=60)
        await world.withdraw()
        await world.eventually(world.has_no_copies)
        assert await world.instances() == []
        await world.eventually(has_claims(world), within=60)

    play(scenario)


@pytest.mark.spec("SU-11")
def test_a_provider_that_insists_on_available_is_contradicted_twice_and_reported_once() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world)
        await suspend(world, "web-0")
        await world.stop_neighbours()
        written = len(_statuses(world))
        for _ in range(60):
            found = await world.instance("web-0")
            entries = member_list(status_of(found), "conditions")
            for entry in entries:
                if isinstance(entry, dict) and entry.get("type") == "Available":
                    entry |= {"status": "True", "reason": "Available", "message": "It serves"}
            await world.set_status(CELL, INSTANCE, "web-0", {"conditions": entries})
            await world.sleep(1)
            assert condition_of(await world.instance("web-0"), "Ready") == READY
        assert len(_statuses(world)) - written <= 1, "beside the first of the suspension"
        assert process.reasons(kind=DEPLOYMENT).count("PauseFailed") == 1

    play(scenario, has_networking=False)


def _statuses(world: World) -> list[object]:
    return [
        one
        for one in world.writes("operator", plane=CELL, kind="Instance")
        if one.address.subresource == "status"
    ]


@pytest.mark.spec("SU-17")
def test_a_day_of_suspension_costs_no_write() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours(has_nso=False)
        world.process().start()
        await world.federate()
        await world.deliver("web", 2)
        await world.eventually(world.is_converged)
        await suspend(world, "web-0", "web-1")
        await world.stop_neighbours()
        await world.sleep(30)
        assert await world.rests(minutes=DAY) == []

    play(scenario, has_networking=False)


def test_a_restart_keeps_what_is_suspended() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 2)
        await suspend(world, "web-0", "web-1")
        await process.kill()
        enforcing(world, "again").start()
        await world.sleep(60)
        assert await is_suspended(world, "web-0", "web-1")
        assert world.writes("again", plane=CELL) == []
        await annotate(world, None)
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


ORDERS: Final = ("suspend", "resume", "image", "scale", "cut", "heal", "restart", "lose", "wait")


class Orders:
    """Random orders to one deployment, and what was ordered last."""

    def __init__(self, world: World, process: Process, seed: int) -> None:
        self._world = world
        self._process = process
        self._random = Random(seed)  # noqa: S311 - of a test
        self._tag = 1
        self.is_suspended = False
        self.replicas = 2

    async def carry_out(self, order: str) -> None:
        world = self._world
        match order:
            case "suspend" | "resume":
                self.is_suspended = order == "suspend"
                await annotate(world, "true" if self.is_suspended else None)
            case "image":
                self._tag += 1
                await world.set_image("web", f"{self._tag}.0")
            case "scale":
                self.replicas = self._random.randint(1, 4)
                await world.scale("web", self.replicas)
            case "cut":
                cut(world)
            case "heal":
                heal(world)
            case "restart":
                await self._process.kill()
                self._process = enforcing(world, f"operator-{self._tag}-{len(world.processes)}")
                self._process.start()
            case "lose":
                for name in (await world.instances())[:1]:
                    await world.delete(CELL, INSTANCE, name)
            case _:
                await world.sleep(self._random.uniform(0, 8))

    def choose(self, number: int) -> list[str]:
        return self._random.choices(ORDERS, k=number)


def created_while_suspended(world: World) -> list[str]:
    """Instances that were created later than 1 s after the order to suspend was stored."""
    since: datetime | None = None
    created: list[str] = []
    for commit in world.history.of(Commit):
        if commit.plane != CELL or not commit.after:
            continue
        if commit.kind == "WorkloadDeployment":
            annotations = member_object(
                member_object(decode_json_object(commit.after), "metadata"), "annotations"
            )
            is_now = annotations.get(labels.SUSPENDED) == "true"
            since = (since or commit.at) if is_now else None
        elif commit.kind == "Instance" and not commit.before:
            is_late = since is not None and commit.at - since > timedelta(seconds=1)
            created += [commit.key] if is_late else []
    return created


@pytest.mark.spec("SU-20")
@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_the_last_order_holds(seed: int) -> None:
    async def scenario(world: World) -> None:
        orders = Orders(world, await begin(world, 2), seed)
        for order in orders.choose(14):
            await orders.carry_out(order)
            await world.sleep(0.3)
        heal(world)
        if not orders.is_suspended:
            await world.eventually(world.is_converged, within=300)
            assert await world.instances() == [f"web-{n}" for n in range(orders.replicas)]
            return
        await world.sleep(120)
        found = await world.instances()
        assert await is_suspended(world, *found)
        assert set(found) <= {f"web-{n}" for n in range(orders.replicas)}

    done = play(scenario, seed=seed, has_networking=False)
    assert created_while_suspended(done.world) == []
    assert done.world.provider.violations == []
