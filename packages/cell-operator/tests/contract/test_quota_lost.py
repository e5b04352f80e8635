"""Claims that are lost, left behind or swept away, and what a sweep may do about them."""

from __future__ import annotations

import pytest
from cell_builders.documents import NS, PROJECT_NAMESPACE
from cell_builders.milo import BUDGET
from cell_builders.quota_scenes import (
    NOTHING,
    OFTEN,
    begin,
    claim_writes,
    claims,
    cut,
    drop_claim,
    enforcing,
    has_claims,
    heal,
    is_granted,
    make_claim,
    milo_of,
    most_claims_at_once,
    open_cell,
    quota_of,
    records,
)
from cell_builders.world import World, our_crds, play, uid_of

from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_operator_kit.core.json import member_object
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.milo.kinds import CLAIMS

RECREATED = "compute_quota_claims_recreated_total"


@pytest.mark.spec("Q-32", "Q-46")
def test_a_lost_claim_is_reported_and_made_again_while_the_instance_runs_on() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 1, quota=OFTEN)
        before = await world.instance("web-0")
        await drop_claim(world)
        await world.eventually(has_claims(world, "instance-web-0"), within=80)
        await world.eventually(records(world))
        assert process.reasons(kind=INSTANCE).count("QuotaClaimLost") == 1
        assert process.measures.total(RECREATED, reason="lost") == 1
        after = await world.instance("web-0")
        assert member_object(after, "status") == member_object(before, "status")

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-46")
def test_a_claim_that_went_during_an_outage_is_made_again_after_it() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 1)
        cut(world)
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged)
        running = uid_of(await world.instance("web-0"))
        await drop_claim(world)
        await world.sleep(30)
        heal(world)
        await world.eventually(records(world), within=60)
        assert process.reasons(kind=INSTANCE).count("QuotaClaimLost") == 1
        assert process.measures.total(RECREATED, reason="lost") == 1
        assert uid_of(await world.instance("web-0")) == running
        assert (await quota_of(world))[:2] == ("True", "QuotaAvailable")

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-32")
def test_a_claim_denied_on_its_re_creation_stops_nothing_and_reserves_nothing() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1, quota=OFTEN)
        before = await world.instance("web-0")
        inside = milo_of(world).inside()
        # Another claim took the room meanwhile.
        await drop_claim(world)
        await make_claim(world, "greedy", cell="", requests=dict(BUDGET))
        await world.sleep(300)
        assert sorted(await claims(world)) == ["greedy"]
        after = await world.instance("web-0")
        assert member_object(after, "status") == member_object(before, "status")
        await inside.delete(CLAIMS, "greedy", namespace=PROJECT_NAMESPACE)
        await world.eventually(records(world), within=700)
        await world.sleep(1)
        assert is_granted((await claims(world))["instance-web-0"])

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-39")
def test_a_milo_that_reaps_claims_is_not_fought() -> None:
    async def scenario(world: World) -> None:
        await world.add_milo()
        milo_of(world).milo.options.reaper = True
        world.start_neighbours()
        process = enforcing(world, quota=OFTEN)
        process.start()
        await world.federate()
        await world.deliver("web", 1)
        await world.eventually(world.is_converged)
        running = uid_of(await world.instance("web-0"))
        await world.sleep(3600)
        before = len(claim_writes(world, "create"))
        await world.sleep(3600)
        assert 2 <= len(claim_writes(world, "create")) - before <= 8
        assert uid_of(await world.instance("web-0")) == running
        assert (await quota_of(world))[:2] == ("True", "QuotaAvailable")
        assert most_claims_at_once(world) == 1

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-37")
@pytest.mark.parametrize("is_granted_later", [True, False])
def test_switched_on_later_running_instances_get_claims_and_run_on(is_granted_later: bool) -> None:
    async def scenario(world: World) -> None:
        await world.add_milo(NOTHING)
        if is_granted_later:
            await milo_of(world).grant(dict(BUDGET), "more")
        world.start_neighbours()
        first = world.process()
        first.start()
        await world.federate()
        await world.deliver("web", 2)
        await world.eventually(world.is_converged)
        await first.stop()
        second = enforcing(world, "second")
        second.start()
        if is_granted_later:
            await world.eventually(has_claims(world, "instance-web-0", "instance-web-1"))
            await world.sleep(5)
            assert (await quota_of(world))[:2] == ("True", "QuotaAvailable")
        else:
            await world.sleep(120)
            assert (await quota_of(world))[:2] == ("True", "QuotaDisabled")
            assert await claims(world) == {}
        assert "QuotaClaimLost" not in second.reasons()
        assert await world.is_converged()

    play(scenario, has_networking=False)


# --- purged ---------------------------------------------------------------------------------------


@pytest.mark.spec("Q-53")
def test_nothing_is_put_back_into_a_project_that_is_purged() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2, quota=OFTEN)
        made = len(claim_writes(world, "create"))
        # Milo purges claims first; the deployments go next, by way of the hub.
        for name in ("instance-web-0", "instance-web-1"):
            await drop_claim(world, name)
        await world.sleep(1)
        keep = {"metadata": {"finalizers": ["example.com/still-running"]}}
        for name in ("web-0", "web-1"):
            await world.patch(CELL, INSTANCE, name, keep)
        await world.withdraw("web")
        await world.sleep(300)
        assert len(claim_writes(world, "create")) == made
        assert await claims(world) == {}

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-53")
def test_a_deployment_that_is_going_gets_no_claim_back_although_its_instance_still_stands() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1, quota=OFTEN)
        made = len(claim_writes(world, "create"))
        keep = {"metadata": {"finalizers": ["example.com/keep"]}}
        await world.patch(CELL, DEPLOYMENT, "web", keep)
        # The deletes of Instances do not get through, so the Instance is not even terminating.
        world.injector.arm(refuse_deletes())
        await drop_claim(world)
        await world.delete(CELL, DEPLOYMENT, "web")
        await world.sleep(300)
        assert await world.instances() == ["web-0"]
        assert len(claim_writes(world, "create")) == made

    play(scenario, has_networking=False, is_clean=False)


def refuse_deletes() -> Fault:
    at = Point(plane=CELL, verb="delete", kind=INSTANCE.kind, times=0)
    return Fault("held", Action.ERROR, at, Parameters(status=503))


# --- left behind ----------------------------------------------------------------------------------


@pytest.mark.spec("Q-38", "Q-40")
@pytest.mark.fault("A6")
def test_claims_left_behind_by_a_dead_process_go_at_the_next_start() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 2)
        await process.kill()
        await world.withdraw("web")
        await world.eventually(world.has_instances)
        await world.sleep(60)
        assert len(await claims(world)) == 2
        second = enforcing(world, "second")
        second.start()
        await world.eventually(has_claims(world))
        assert len(claim_writes(world, "delete", "second")) == 2
        swept = second.measures.total("compute_sweep_deletions_total", kind="ResourceClaim")
        assert swept == 2

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-35", "Q-38", "C-82")
def test_a_sweep_spares_what_is_not_ours_and_takes_what_names_no_slot() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        await make_claim(world, "instance-other-0", cell="ord-1", uid="theirs")
        await make_claim(world, "instance-mine", cell="", uid="")
        await make_claim(world, "instance-noslot", uid="gone")
        await make_claim(world, "odd", uid="gone")
        await make_claim(world, "instance-web-0", uid="gone", namespace="")
        await make_claim(world, "instance-web-1", uid="gone", namespace="elsewhere")
        enforcing(world, "second").start()
        await world.eventually(has_claims(world, "instance-other-0", "instance-mine"))

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-48", "Q-51")
def test_a_process_that_starts_during_an_outage_sweeps_when_the_plane_is_back() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 2)
        await process.kill()
        cut(world)
        await world.scale("web", 1)
        enforcing(world, "second").start()
        await world.eventually(lambda: world.has_instances("web-0"))
        await world.sleep(300)
        heal(world)
        await world.eventually(has_claims(world, "instance-web-0"), within=38)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-51", "Q-44")
@pytest.mark.fault("A6")
def test_an_adoption_that_a_dead_process_owed_is_made_up_after_the_start() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 1)
        cut(world)
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged)
        await process.kill()
        heal(world)
        second = enforcing(world, "second")
        second.start()
        await world.eventually(records(world))
        assert second.measures.total("compute_quota_claims_adopted_total") == 1
        assert claim_writes(world, "create", "second") == []
        assert claim_writes(world, "delete", "second") == []

    play(scenario, has_networking=False)


@pytest.mark.fault("D9")
@pytest.mark.spec("C-81")
def test_a_sweep_that_would_take_too_much_needs_the_same_finding_twice() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        for number in range(12):
            await make_claim(world, f"instance-old-{number}", uid=f"gone-{number}")
        second = enforcing(world, "second")
        second.start()
        await world.sleep(30)
        assert len(await claims(world)) == 12
        assert second.reasons().count("MassDeleteRefused") == 1
        refused = second.measures.total("compute_sweep_refusals_total", kind="ResourceClaim")
        assert refused == 1
        await world.eventually(has_claims(world), within=60)

    play(scenario, has_networking=False)


@pytest.mark.fault("D9")
@pytest.mark.spec("C-81")
def test_a_cell_that_comes_up_empty_for_a_while_costs_no_claim() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 12)
        before = {name: uid_of(claim) for name, claim in (await claims(world)).items()}
        # As after a restore from an empty backup, live reads and all; then it is as it was.
        await world.stop_neighbours()
        kept = world.planes[CELL]
        empty = await world.add_plane(CELL, *our_crds())
        watches = Point(plane=CELL, verb="watch", times=10)
        expired = Parameters(status=410, reason="Expired")
        world.injector.arm(Fault("B6", Action.ERROR, watches, expired))
        for stream in tuple(kept.state.streams):
            stream.end()
        await world.sleep(40)
        assert "MassDeleteRefused" in process.reasons()
        world.planes[CELL] = kept
        await empty.close()
        await world.sleep(1200)
        after = {name: uid_of(claim) for name, claim in (await claims(world)).items()}
        assert after == before
        assert claim_writes(world, "delete") == []

    play(scenario, has_networking=False, is_clean=False)


@pytest.mark.spec("Q-38")
def test_a_namespace_that_has_gone_does_not_keep_its_claims() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        cut(world)
        await world.delete(CELL, NAMESPACE, NS, "")

        async def is_gone() -> bool:
            return await world.find(CELL, NAMESPACE, NS, "") is None

        await world.eventually(is_gone)
        await world.sleep(60)
        heal(world)
        await world.eventually(has_claims(world), within=36)

    play(scenario, has_networking=False)


@pytest.mark.spec("C-80")
def test_a_claim_without_a_resolvable_project_is_reported_as_orphaned() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 1)
        await process.kill()
        nothing = {"metadata": {"labels": {"meta.datumapis.com/upstream-namespace": None}}}
        await world.patch(CELL, NAMESPACE, NS, nothing, "")
        second = enforcing(world, "second")
        second.start()
        await world.sleep(5)
        await world.withdraw("web")
        await world.eventually(world.has_instances)
        await world.sleep(5)
        assert second.reasons(kind=INSTANCE).count("QuotaClaimOrphaned") == 1
        assert second.measures.total("compute_quota_claim_orphaned_total") == 1
        assert sorted(await claims(world)) == ["instance-web-0"]

    play(scenario, has_networking=False)
