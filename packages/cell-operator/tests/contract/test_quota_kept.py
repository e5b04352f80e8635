"""A slot keeps its claim: rolls, restarts, replacements; with the project plane there and away."""

from __future__ import annotations

import pytest
from cell_builders.quota_scenes import (
    OFTEN,
    begin,
    claim_commits,
    claim_writes,
    claims,
    cut,
    drop_claim,
    enforcing,
    has_claims,
    heal,
    is_gated,
    is_granted,
    make_claim,
    most_claims_at_once,
    open_cell,
    quota_of,
    recorded_uid,
    records,
    refuse,
    resize,
    says,
    times,
)
from cell_builders.world import World, play, spec_of, uid_of

from compute_cell_operator.planes import CELL, INSTANCE
from compute_operator_kit.core.json import JsonObject, decode_json_object, member_object
from compute_sim_planes.faults.links import LinkState
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Commit

PENDING = "compute_quota_adoptions_pending"
DOWN = ("compute_planes", (("plane", "quota"), ("state", "down")))
ADOPTED = "compute_quota_claims_adopted_total"
RECREATED = "compute_quota_claims_recreated_total"


def allocations_seen(world: World) -> set[str]:
    """Every value of a standing claim's grant, since it was first granted."""
    commits = claim_commits(world)
    seen = [is_granted(decode_json_object(commit.after)) for commit in commits if commit.after]
    first = seen.index(True)
    return {str(value) for value in seen[first:]}


# --- with the plane there -------------------------------------------------------------------------


@pytest.mark.spec("Q-43")
def test_a_roll_keeps_claim_spec_and_grant_and_only_the_recorded_uid_follows() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 2, times(2))
        # The budget is used up, and another claim waits for what becomes free.
        await make_claim(world, "somebody", cell="")
        await world.sleep(1)
        before = await claims(world)
        assert not is_granted(before["somebody"])
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged)
        after = await claims(world)
        for name in ("web-0", "web-1"):
            claim = f"instance-{name}"
            assert uid_of(after[claim]) == uid_of(before[claim])
            assert spec_of(after[claim]) == spec_of(before[claim])
            assert recorded_uid(after[claim]) == uid_of(await world.instance(name))
            assert recorded_uid(after[claim]) != recorded_uid(before[claim])
        assert len(claim_writes(world, "create")) == 2
        assert claim_writes(world, "delete") == []
        assert len(claim_writes(world, "patch")) == 2
        assert process.measures.total(ADOPTED) == 2

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-43")
def test_the_replacement_of_a_broken_instance_keeps_the_claim() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1, times(1))
        before = (await claims(world))["instance-web-0"]
        await world.delete(CELL, INSTANCE, "web-0")
        await world.sleep(1)
        await world.eventually(world.is_converged)
        after = (await claims(world))["instance-web-0"]
        assert uid_of(after) == uid_of(before)
        assert recorded_uid(after) == uid_of(await world.instance("web-0"))
        assert allocations_seen(world) == {"True"}
        assert len(claim_writes(world)) == 2  # made once, handed on once

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-47")
def test_another_size_is_claimed_anew_only_after_the_predecessor_is_gone() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 1, times(3))
        before = (await claims(world))["instance-web-0"]
        first = await world.instance("web-0")
        await resize(world)
        await world.sleep(1)
        await world.eventually(world.is_converged)
        after = (await claims(world))["instance-web-0"]
        assert uid_of(after) != uid_of(before)
        assert process.measures.total(RECREATED, reason="size_changed") == 1
        assert most_claims_at_once(world) == 1
        released = claim_writes(world, "delete")
        assert len(released) == 1
        gone = [
            one.at
            for one in world.history.of(Commit)
            if one.plane == CELL and one.kind == INSTANCE.kind and not one.after
        ]
        assert uid_of(first) != uid_of(await world.instance("web-0"))
        assert gone[0] <= released[0].at

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-47", "Q-49")
def test_the_gate_of_a_larger_successor_opens_on_the_new_grant_only() -> None:
    async def scenario(world: World) -> None:
        # Room for the old size alone: the new one is denied, and must not start on the old grant.
        await begin(world, 1, times(1))
        await resize(world)
        await world.eventually(says(world, "False", "QuotaExceeded"))
        await world.sleep(30)
        assert await is_gated(world)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-48")
def test_the_claim_of_a_wanted_slot_stays_while_the_slot_is_empty() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 1, quota=OFTEN)
        before = (await claims(world))["instance-web-0"]
        await process.stop()
        await world.delete(CELL, INSTANCE, "web-0")
        await world.eventually(world.has_instances)
        # Nothing can be created, so the slot stays vacant while sweeps pass.
        world.injector.arm(refuse_creates())
        second = enforcing(world, "second", OFTEN)
        second.start()
        await world.sleep(300)
        assert uid_of((await claims(world))["instance-web-0"]) == uid_of(before)
        assert claim_writes(world, identity="second") == []
        await world.scale("web", 0)
        await world.eventually(has_claims(world))
        assert len(claim_writes(world, "delete", "second")) == 1
        await world.sleep(120)
        assert len(claim_writes(world, identity="second")) == 1

    play(scenario, has_networking=False, is_clean=False)


def refuse_creates() -> Fault:
    at = Point(plane=CELL, verb="create", kind=INSTANCE.kind, times=0)
    return Fault("held", Action.ERROR, at, Parameters(status=503))


@pytest.mark.spec("Q-48", "Q-38")
@pytest.mark.parametrize("replicas", [1, 0])
def test_claims_go_once_with_the_slots_that_are_not_wanted_any_more(replicas: int) -> None:
    async def scenario(world: World) -> None:
        await begin(world, 3)
        await world.scale("web", replicas)
        kept = [f"instance-web-{ordinal}" for ordinal in range(replicas)]
        await world.eventually(has_claims(world, *kept))
        assert len(claim_writes(world, "delete")) == 3 - replicas
        assert await world.rests(15) == []

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-38")
def test_the_claim_is_released_only_after_the_instance_has_really_gone() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        keep = {"metadata": {"finalizers": ["example.com/still-running"]}}
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": None}})
        await world.patch(CELL, INSTANCE, "web-0", keep)
        await world.withdraw("web")
        await world.sleep(60)
        assert sorted(await claims(world)) == ["instance-web-0"]
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": None}})
        await world.eventually(has_claims(world))
        assert len(claim_writes(world, "delete")) == 1

    play(scenario, has_networking=False)


# --- with the plane away --------------------------------------------------------------------------


@pytest.mark.spec("Q-44")
@pytest.mark.fault("D6")
@pytest.mark.parametrize("state", [LinkState.REFUSED, LinkState.SILENT])
def test_a_roll_goes_on_upon_the_grant_that_is_held_and_is_made_up_with_one_patch(
    state: LinkState,
) -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 2, times(2))
        before = await claims(world)
        cut(world, state)
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged, within=120)
        assert (await quota_of(world))[:2] == ("True", "QuotaAvailable")
        await world.sleep(10)
        assert process.measures.gauges[(PENDING, ())] == 2
        assert process.measures.gauges[DOWN] == 1
        heal(world)
        await world.eventually(records(world, "web-0"), within=36)
        await world.eventually(records(world, "web-1"), within=36)
        after = await claims(world)
        assert {uid_of(one) for one in after.values()} == {uid_of(one) for one in before.values()}
        assert len(claim_writes(world, "patch")) == 2
        assert len([one for one in claim_writes(world, "create") if one.commits]) == 2
        assert claim_writes(world, "delete") == []
        await world.sleep(10)
        assert process.measures.gauges[(PENDING, ())] == 0
        assert process.measures.gauges[DOWN] == 0

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-44")
def test_several_successors_during_an_outage_are_made_up_with_one_patch() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        first = recorded_uid((await claims(world))["instance-web-0"])
        cut(world)
        for tag in ("2.0", "3.0"):
            await world.set_image("web", tag)
            await world.sleep(1)
            await world.eventually(world.is_converged)
        heal(world)
        await world.eventually(records(world), within=36)
        patches = [one for one in claim_writes(world, "patch") if one.commits]
        assert len(patches) == 1
        commit = patches[0].commits[0]
        assert recorded_uid(decode_json_object(commit.before)) == first
        assert recorded_uid(decode_json_object(commit.after)) == uid_of(
            await world.instance("web-0")
        )

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-45", "Q-33")
@pytest.mark.fault("D6")
def test_a_new_slot_and_another_size_wait_for_the_plane() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        cut(world)
        await world.scale("web", 2)
        await world.eventually(says(world, "False", "QuotaBackendUnavailable", "web-1"))
        await world.sleep(60)
        assert await is_gated(world, "web-1")
        await world.scale("web", 1)
        await world.eventually(lambda: world.has_instances("web-0"))
        await resize(world)
        await world.eventually(says(world, "False", "QuotaBackendUnavailable"))
        await world.sleep(60)
        assert await is_gated(world)
        heal(world)
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-45")
@pytest.mark.fault("D6", "D4")
def test_a_restarted_process_holds_no_grant() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 2)
        cut(world)
        await process.kill()
        enforcing(world, "second").start()
        await world.set_image("web", "2.0")
        await world.eventually(says(world, "False", "QuotaBackendUnavailable", "web-1"))
        await world.sleep(120)
        # The roll stops at its first slot; the other runs on.
        assert await is_gated(world, "web-1")
        assert (await quota_of(world, "web-0"))[:2] == ("True", "QuotaAvailable")
        heal(world)
        await world.eventually(world.is_converged)
        assert claim_writes(world, "delete", "second") == []

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-45")
@pytest.mark.parametrize(
    ("verb", "status", "reason", "expected"),
    [
        ("get", 401, "Unauthorized", "QuotaBackendUnavailable"),
        ("get", 403, "Forbidden", "QuotaBackendUnavailable"),
        ("patch", 403, "Forbidden", "QuotaMisconfigured"),
        ("patch", 404, "NotFound", "PendingEvaluation"),
    ],
)
def test_a_plane_that_answers_but_refuses_lets_no_held_grant_count(
    verb: str, status: int, reason: str, expected: str
) -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        fault = refuse(verb, status, reason)
        world.injector.arm(fault)
        await world.delete(CELL, INSTANCE, "web-0")

        async def is_told() -> bool:
            if await world.instances() != ["web-0"]:
                return False
            return (await quota_of(world))[1] == expected

        await world.eventually(is_told)
        await world.sleep(30)
        assert await is_gated(world)
        world.injector.disarm(fault.id)
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-45")
def test_a_grant_on_a_claim_we_gave_up_is_not_held() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        # Scaled to nothing the claim goes; scaled up again during an outage nothing covers it.
        await world.scale("web", 0)
        await world.eventually(has_claims(world))
        cut(world)
        await world.scale("web", 1)
        await world.eventually(says(world, "False", "QuotaBackendUnavailable"))
        await world.sleep(30)
        assert await is_gated(world)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-33")
@pytest.mark.fault("D6")
def test_an_outage_before_the_start_is_reported_and_takes_no_denial_away() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world, times(0))
        await world.deliver("web", 1)
        await world.eventually(says(world, "False", "QuotaExceeded"))
        _, _, message = await quota_of(world)
        cut(world)
        await world.sleep(300)
        assert await quota_of(world) == ("False", "QuotaExceeded", message)
        assert await is_gated(world)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-32")
@pytest.mark.fault("D6")
def test_a_started_instance_is_not_touched_by_an_outage_or_a_lost_claim() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        before = await world.instance("web-0")
        cut(world)
        assert await world.rests(30) == []
        heal(world)
        await drop_claim(world)
        await world.sleep(1200)
        after = await world.instance("web-0")
        assert member_object(after, "status") == member_object(before, "status")
        assert uid_of(after) == uid_of(before)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-32")
def test_a_started_instance_that_is_resized_in_place_runs_on_at_the_size_it_was_granted() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1, quota=OFTEN)
        before = (await claims(world))["instance-web-0"]
        spec: JsonObject = {
            "spec": {"runtime": {"resources": {"requests": {"cpu": "4", "memory": "8Gi"}}}}
        }
        await world.patch(CELL, INSTANCE, "web-0", spec)
        await world.sleep(300)
        assert (await quota_of(world))[:2] == ("True", "QuotaAvailable")
        after = (await claims(world))["instance-web-0"]
        assert (uid_of(after), spec_of(after)) == (uid_of(before), spec_of(before))
        assert len(claim_writes(world)) == 1

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-33", "Q-45")
@pytest.mark.fault("A6", "D6")
def test_an_earlier_true_stays_through_an_outage_and_the_gate_with_it() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        busy = Point(plane=CELL, verb="patch", kind=INSTANCE.kind, times=0)
        conflict = Parameters(status=409, reason="Conflict")
        world.injector.arm(Fault("busy", Action.ERROR, busy, conflict))
        await world.deliver("web", 1)
        await world.eventually(says(world, "True", "QuotaAvailable"))
        # Dead between the grant and the gate; the next process gets no answer.
        await process.kill()
        world.injector.disarm("busy")
        cut(world)
        enforcing(world, "second").start()
        await world.sleep(120)
        assert (await quota_of(world))[:2] == ("True", "QuotaAvailable")
        assert await is_gated(world)
        heal(world)
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-25", "Q-45")
def test_an_adoption_that_is_not_authenticated_is_reported_and_opens_nothing() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 1)
        await process.kill()
        await world.delete(CELL, INSTANCE, "web-0")
        fault = refuse("patch", 401, "Unauthorized")
        world.injector.arm(fault)
        enforcing(world, "second").start()
        await world.eventually(says(world, "False", "QuotaBackendUnavailable"))
        assert (await quota_of(world))[2].startswith(
            "Quota backend unreachable adopting ResourceClaim: "
        )
        assert await is_gated(world)
        world.injector.disarm(fault.id)
        await world.eventually(world.is_converged)
        assert claim_writes(world, "create", "second") == []

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-38", "Q-51")
@pytest.mark.fault("D6")
def test_a_release_waits_for_the_plane_and_happens_once() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2)
        cut(world)
        await world.withdraw("web")
        taken = await world.eventually(world.has_instances)
        assert taken < 30  # no finalizer of ours waits for a far plane
        await world.sleep(600)
        assert len(await claims(world)) == 2
        heal(world)
        await world.eventually(has_claims(world), within=36)
        assert len([one for one in claim_writes(world, "delete") if one.commits]) == 2

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-38")
@pytest.mark.fault("D6")
def test_a_release_that_waited_is_dropped_when_the_slot_is_wanted_again() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2)
        before = (await claims(world))["instance-web-1"]
        cut(world)
        await world.scale("web", 1)
        await world.eventually(lambda: world.has_instances("web-0"))
        await world.sleep(60)
        await world.scale("web", 2)
        await world.eventually(lambda: world.has_instances("web-0", "web-1"))
        heal(world)
        await world.eventually(world.is_converged)
        await world.eventually(records(world, "web-1"))
        assert uid_of((await claims(world))["instance-web-1"]) == uid_of(before)
        assert claim_writes(world, "delete") == []

    play(scenario, has_networking=False)
