"""What is left over on other planes goes once, and only after its Instance (cell.md 12)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from cell_builders.documents import NS, PROJECT, a_deployment_document, an_instance_document
from cell_builders.milo import SimulatedMilo
from cell_builders.quota_scenes import OFTEN, make_claim
from cell_builders.world import (
    QUOTA_ON,
    Process,
    World,
    condition_of,
    gates_of,
    our_crds,
    play,
    settings_of,
    uid_of,
)

from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_operator_kit.core.json import JsonObject, member_object
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Injected

PREFIX = "compute.datumapis.com/"
RECORDED = f"{PREFIX}instance-uid"
HOLD: JsonObject = {"metadata": {"finalizers": ["test/hold"]}}
LET_GO: JsonObject = {"metadata": {"finalizers": None}}


def start(world: World, name: str = "operator", quota: JsonObject = QUOTA_ON) -> Process:
    process = world.process(name, settings_of(quota=quota, networking="off"))
    process.start()
    return process


async def begin(world: World, replicas: int = 1, quota: JsonObject = QUOTA_ON) -> SimulatedMilo:
    """A deployment that runs, with its claims and copies."""
    milo = await world.add_milo()
    world.provider.options.start_at_once()
    world.start_neighbours()
    start(world, quota=quota)
    await world.federate()
    await world.deliver("web", replicas)
    await world.eventually(world.is_converged, within=120)
    await world.eventually(lambda: world.has_copies(*slots(replicas)))
    assert sorted(await milo.claims()) == sorted(f"instance-{name}" for name in slots(replicas))
    return milo


def slots(replicas: int) -> list[str]:
    return [f"web-{ordinal}" for ordinal in range(replicas)]


async def has_claims(milo: SimulatedMilo, *names: str) -> bool:
    return sorted(await milo.claims()) == sorted(f"instance-{name}" for name in names)


def removals(world: World, plane: str, identity: str = "operator") -> Counter[str]:
    """How often each object was really deleted by a process on a plane."""
    return Counter(
        one.address.name
        for one in world.writes(identity, plane=plane, verb="delete")
        if one.commits
    )


# --- with the Instance ----------------------------------------------------------------------------


@pytest.mark.spec("C-77")
@pytest.mark.fault("G9")
def test_copy_and_claim_stay_while_the_provider_holds_the_instance() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 2)
        await world.patch(CELL, INSTANCE, "web-1", HOLD)
        await world.scale("web", 1)
        await world.sleep(300)
        assert await world.copies() == slots(2)
        assert await has_claims(milo, *slots(2))
        await world.patch(CELL, INSTANCE, "web-1", LET_GO)
        await world.eventually(lambda: world.has_copies("web-0"), within=60)
        await world.eventually(lambda: has_claims(milo, "web-0"), within=60)
        assert removals(world, HUB) == {"web-1": 1}
        assert removals(world, PROJECT) == {"instance-web-1": 1}

    play(scenario)


@pytest.mark.spec("C-77")
def test_a_pending_claim_goes_with_its_slot_too() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world)
        milo.milo.options.pause()
        await world.scale("web", 2)
        await world.eventually(lambda: has_claims(milo, *slots(2)))
        await world.scale("web", 1)
        await world.eventually(lambda: has_claims(milo, "web-0"), within=60)
        await world.eventually(lambda: world.has_copies("web-0"), within=60)

    play(scenario)


@pytest.mark.spec("C-99")
def test_a_deployment_that_terminates_takes_its_copies_and_claims_along_once() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 3)
        await world.patch(CELL, DEPLOYMENT, "web", HOLD)
        await world.withdraw()
        # Karmada writes the spec of a new root onto what still terminates.
        await world.scale("web", 5)
        await world.eventually(world.has_instances, within=60)
        await world.eventually(lambda: has_claims(milo), within=60)
        await world.eventually(world.has_no_copies, within=60)
        births = world.writes(kind=INSTANCE.kind, verb="create", plane=CELL)
        assert len(births) == 3
        assert removals(world, PROJECT) == {f"instance-{name}": 1 for name in slots(3)}
        await world.patch(CELL, DEPLOYMENT, "web", LET_GO)
        await world.sleep(5)
        await world.deliver("web", 2)
        await world.eventually(world.is_converged)
        await world.eventually(lambda: world.has_copies(*slots(2)))

    play(scenario)


# --- crashes and restarts -------------------------------------------------------------------------


@pytest.mark.spec("C-78")
@pytest.mark.fault("A6")
def test_what_vanished_without_a_running_operator_is_released_once_at_the_start() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 3)
        await world.processes[0].kill()
        # One goes with its slot; one vanishes from a slot that stays wanted.
        await world.scale("web", 2)
        for name in ("web-1", "web-2"):
            await world.delete(CELL, INSTANCE, name)
        await world.eventually(lambda: world.has_instances("web-0"))
        before = uid_of((await milo.claims())["instance-web-1"])
        start(world, "operator-2")
        await world.eventually(lambda: has_claims(milo, *slots(2)), within=60)
        await world.eventually(lambda: world.has_copies(*slots(2)), within=60)
        await world.sleep(120)
        assert removals(world, PROJECT, "operator-2") == {"instance-web-2": 1}
        assert uid_of((await milo.claims())["instance-web-1"]) == before
        assert await world.rests(30, "operator-2") == []

    play(scenario)


@pytest.mark.spec("C-80")
def test_while_the_cell_cannot_be_read_nothing_is_released() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 2)
        await world.sleep(60 - world.clock.monotonic().total_seconds() % 60)
        await world.scale("web", 1)
        await world.eventually(lambda: world.has_instances("web-0"))
        await world.sleep(100)
        # Every watch has shown the deletion, but the live read of the cell gets no answer.
        assert await world.copies() == slots(2)
        assert await has_claims(milo, *slots(2))
        await world.sleep(240)
        assert await world.copies() == ["web-0"]
        assert await has_claims(milo, "web-0")

    at = Point(
        plane=CELL,
        verb="get",
        kind=INSTANCE.kind,
        key=f"{NS}/web-1",
        times=0,
        after=timedelta(seconds=55),
        until=timedelta(seconds=300),
    )
    play(scenario, Fault("D8", Action.ERROR, at, Parameters(status=504)))


@pytest.mark.spec("C-80")
@pytest.mark.fault("B5")
def test_a_claim_whose_instance_the_cache_lacks_is_kept() -> None:
    """The live read decides where no deployment wants the slot and no event showed the Instance."""

    async def scenario(world: World) -> None:
        milo = await begin(world, quota=OFTEN)
        unseen = await world.create(CELL, an_instance_document("web-1"))
        await make_claim(world, "instance-web-1", uid=uid_of(unseen))
        await world.sleep(150)
        assert await has_claims(milo, *slots(2))
        assert removals(world, PROJECT) == {}
        await world.delete(CELL, INSTANCE, "web-1")
        await world.eventually(lambda: has_claims(milo, "web-0"), within=150)

    at = Point(plane=CELL, verb="watch", kind=INSTANCE.kind, key=f"{NS}/web-1", times=0)
    done = play(scenario, Fault("B5", Action.DROP, at), is_clean=False)
    assert list(done.history.of(Injected)), "the fault never took effect"


# --- the mass-delete guard ------------------------------------------------------------------------


@pytest.mark.spec("C-81")
@pytest.mark.fault("D9")
def test_a_cell_that_lost_its_instances_keeps_its_copies_until_a_second_look() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 12)
        await world.processes[0].stop()
        # As after a restore from an empty backup: no watch showed their deletion.
        await world.delete(CELL, DEPLOYMENT, "web")
        await world.eventually(world.has_instances, within=60)
        again = start(world, "operator-2")
        await world.sleep(50)
        assert await world.copies() == sorted(slots(12))
        assert again.reasons().count("MassDeleteRefused") >= 1
        assert again.measures.total("compute_sweep_refusals_total", kind="Instance") == 1
        assert removals(world, HUB, "operator-2") == {}
        await world.eventually(world.has_no_copies, within=60)
        assert removals(world, HUB, "operator-2") == dict.fromkeys(slots(12), 1)
        assert again.measures.total("compute_sweep_deletions_total", kind="Instance") == 12

    # Lists take their time, so that several names are looked at while one is under way.
    at = Point(plane=CELL, verb="list", kind=INSTANCE.kind, times=0)
    slow = Parameters(delay=timedelta(seconds=1))
    play(scenario, Fault("D2", Action.DELAY, at, slow))


@pytest.mark.spec("C-81")
@pytest.mark.fault("D9")
def test_instances_that_come_back_before_the_second_look_keep_their_copies() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 12)
        before = {name: uid_of(await world.copy(name)) for name in slots(12)}
        # The cell comes up empty for a while, live reads and all, and then as it was.
        await world.processes[0].stop()
        await world.stop_neighbours()
        kept = world.planes[CELL]
        empty = await world.add_plane(CELL, *our_crds())
        again = start(world, "operator-2")
        await world.sleep(40)
        assert "MassDeleteRefused" in again.reasons()
        world.planes[CELL] = kept
        await empty.close()
        await world.sleep(600)
        assert {name: uid_of(await world.copy(name)) for name in slots(12)} == before
        assert removals(world, HUB, "operator-2") == {}

    play(scenario)


@pytest.mark.spec("C-81")
def test_scaling_down_is_not_hindered_by_the_guard() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 12)
        # All at once, and the hub keeps its root: the copies are ours to remove.
        await world.delete(CELL, DEPLOYMENT, "web")
        await world.eventually(world.has_no_copies, within=30)
        assert removals(world, HUB) == dict.fromkeys(slots(12), 1)
        await world.eventually(lambda: has_claims(milo), within=30)
        assert "MassDeleteRefused" not in world.processes[0].reasons()

    play(scenario)


@pytest.mark.spec("C-82")
def test_sweeps_spare_other_cells_and_what_bears_no_label_of_ours() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world)
        await world.processes[0].stop()
        strange = {"old-0": {f"{PREFIX}cell": "ord-1"}, "old-1": {}}
        for name, labels in strange.items():
            document = an_instance_document(name)
            member_object(document, "metadata")["labels"] = {**labels}
            await world.create(HUB, document)
        mine = an_instance_document("old-2")
        member_object(mine, "metadata")["labels"] = {f"{PREFIX}cell": "dfw-1"}
        await world.create(HUB, mine)
        start(world, "operator-2")
        await world.sleep(1500)
        assert await world.copies() == ["old-0", "old-1", "web-0"]
        assert removals(world, HUB, "operator-2") == {"old-2": 1}
        assert await has_claims(milo, "web-0")

    play(scenario)


@pytest.mark.fault("D9")
def test_a_hub_restored_from_a_backup_is_brought_up_to_date() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2)
        await world.processes[0].stop()
        # Restored: other UIDs, older versions, and a root that is not the one it was.
        old = world.planes[HUB]
        await world.add_plane(HUB, *our_crds())
        await old.close()
        start(world, "operator-2")
        await world.sleep(30)
        await world.federate()
        root = await world.create(HUB, a_deployment_document("web", 2))
        await world.sleep(60)
        assert await world.copies() == []  # not the deployment that was delivered from
        origin: JsonObject = {
            "metadata": {"annotations": {"resourcetemplate.karmada.io/uid": uid_of(root)}}
        }
        await world.patch(CELL, DEPLOYMENT, "web", origin)
        await world.eventually(lambda: world.has_copies(*slots(2)), within=60)
        assert await world.instances() == slots(2)
        assert world.writes("operator-2", plane=CELL, verb="delete") == []

    play(scenario)


# --- slots and claims -----------------------------------------------------------------------------


@pytest.mark.spec("C-92")
def test_a_roll_keeps_every_claim_and_opens_no_gate_before_its_adoption() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 3)
        before = {name: (uid_of(one), one["spec"]) for name, one in (await milo.claims()).items()}
        writes = len(world.writes(plane=PROJECT))
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged, within=120)
        await world.sleep(5)
        claims = await milo.claims()
        assert {name: (uid_of(one), one["spec"]) for name, one in claims.items()} == before
        for name in slots(3):
            metadata = member_object(claims[f"instance-{name}"], "metadata")
            recorded = member_object(metadata, "annotations")[RECORDED]
            assert recorded == uid_of(await world.instance(name))
        verbs = [one.address.verb for one in world.writes(plane=PROJECT)[writes:]]
        assert verbs == ["patch"] * 3

    done = play(scenario)
    for name in slots(3):
        adopted = next(
            one.at
            for one in done.world.writes(plane=PROJECT, verb="patch")
            if one.address.name == f"instance-{name}"
        )
        opened = [
            one.begun
            for one in done.world.writes(plane=CELL, verb="patch", kind=INSTANCE.kind)
            if one.address.name == name
        ]
        assert adopted <= opened[-1]


@pytest.mark.spec("C-93")
@pytest.mark.fault("D4")
def test_a_cut_off_cell_restarts_its_instances_on_held_grants() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 3)
        before = {name: uid_of(one) for name, one in (await milo.claims()).items()}
        for plane in (HUB, PROJECT):
            world.links[plane].cut()
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged, within=180)
        # A new slot has no grant to stand on, and waits behind its gate.
        await world.scale("web", 4)
        await world.sleep(60)
        waiting = await world.instance("web-3")
        assert gates_of(waiting) == ["Quota"]
        assert condition_of(waiting, "QuotaGranted")[:2] == ("False", "QuotaBackendUnavailable")
        writes = len(world.writes(plane=PROJECT))
        for plane in (HUB, PROJECT):
            world.links[plane].heal()
        await world.eventually(world.is_converged, within=120)
        await world.eventually(lambda: world.has_copies(*slots(4)), within=60)
        claims = await milo.claims()
        assert {name: uid_of(claims[name]) for name in before} == before
        sent = Counter(
            (one.address.verb, one.address.name)
            for one in world.writes(plane=PROJECT)[writes:]
            if one.commits
        )
        adoptions = {("patch", f"instance-{name}"): 1 for name in slots(3)}
        assert sent == {**adoptions, ("create", "instance-web-3"): 1}

    play(scenario)


@pytest.mark.spec("C-93")
def test_a_restarted_operator_holds_no_grant_and_the_next_slot_waits() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 3)
        for plane in (HUB, PROJECT):
            world.links[plane].cut()
        await world.processes[0].stop()
        start(world, "operator-2")
        await world.set_image("web", "2.0")
        await world.sleep(180)
        assert gates_of(await world.instance("web-2")) == ["Quota"]
        assert [gates_of(await world.instance(name)) for name in slots(2)] == [[], []]
        for plane in (HUB, PROJECT):
            world.links[plane].heal()
        await world.eventually(world.is_converged, within=180)
        sent = [one.address.verb for one in world.writes("operator-2", plane=PROJECT)]
        assert sent == ["patch"] * 3
        assert await has_claims(milo, *slots(3))

    play(scenario)


@pytest.mark.spec("C-94")
def test_a_claim_stays_while_its_slot_is_wanted_and_goes_once_when_it_is_not() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 2)
        # Nothing new can be made, so the slot stays empty through a start and sweeps.
        await world.processes[0].stop()
        await world.delete(CELL, INSTANCE, "web-1")
        await world.eventually(lambda: world.has_instances("web-0"))
        start(world, "operator-2")
        await world.sleep(1500)
        assert await world.instances() == ["web-0"]
        assert await has_claims(milo, *slots(2))
        await world.scale("web", 1)
        await world.eventually(lambda: has_claims(milo, "web-0"), within=60)
        assert removals(world, PROJECT, "operator-2") == {"instance-web-1": 1}

    at = Point(plane=CELL, verb="create", kind=INSTANCE.kind, nth=3, times=0)
    play(
        scenario,
        Fault("C6", Action.ERROR, at, Parameters(status=403, reason="Forbidden")),
        is_clean=False,
    )


@pytest.mark.spec("C-95")
def test_a_deployment_that_goes_while_its_slot_is_empty_releases_the_claim() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world)
        await world.delete(CELL, INSTANCE, "web-0")
        await world.eventually(world.has_instances)
        await world.sleep(30)
        assert await has_claims(milo, "web-0")
        await world.withdraw()
        await world.eventually(lambda: has_claims(milo), within=60)
        assert removals(world, PROJECT) == {"instance-web-0": 1}

    at = Point(plane=CELL, verb="create", kind=INSTANCE.kind, nth=2, times=0)
    play(
        scenario,
        Fault("C6", Action.ERROR, at, Parameters(status=403, reason="Forbidden")),
        is_clean=False,
    )


@pytest.mark.spec("C-99")
def test_a_namespace_that_terminates_gives_back_its_claims_from_memory() -> None:
    async def scenario(world: World) -> None:
        milo = await begin(world, 2)
        await world.delete(CELL, NAMESPACE, NS)
        await world.eventually(lambda: has_claims(milo), within=120)
        assert removals(world, PROJECT) == {f"instance-{name}": 1 for name in slots(2)}
        births = world.writes(kind=INSTANCE.kind, verb="create", plane=CELL)
        assert len(births) == 2
        await world.eventually(world.has_no_copies, within=120)

    play(scenario)
