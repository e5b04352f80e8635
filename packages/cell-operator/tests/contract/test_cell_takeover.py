"""A cell that the Go operators ran until now, taken over (operations.md OU-03, OU-04)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

import pytest
from cell_builders.documents import PROJECT
from cell_builders.predecessor import BUDGET, RUNNING, WAITING, Installation
from cell_builders.quota_scenes import (
    claim_commits,
    claim_writes,
    claims,
    enforcing,
    has_claims,
    is_granted,
    milo_of,
    most_claims_at_once,
    open_cell,
    quota_of,
    recorded_uid,
    resize,
    says,
    times,
)
from cell_builders.recording import THEIR_HASH
from cell_builders.world import (
    Process,
    World,
    condition_of,
    gates_of,
    play,
    spec_of,
    status_of,
    uid_of,
)

from compute_api_types import labels
from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    decode_json_object,
    member_int,
    member_list,
    member_object,
    member_text,
)
from compute_sim_planes.milo.kinds import BUCKETS, CLAIMS

DEPLOYMENTS = ("api-p-dfw", "extra-p-dfw")
OLD_FINALIZERS = [*labels.RETIRED_INSTANCE_FINALIZERS]


async def take_over(
    world: World, *, is_claimed: bool = True, budget: Mapping[str, int] = BUDGET
) -> Process:
    """The recorded cell with its provider, and our operator in the place of theirs."""
    world.provider.options.start_at_once()
    await world.add_milo(budget)
    await world.federate()
    installed = Installation(world)
    await installed.plant()
    if is_claimed:
        await installed.claim()
    world.start_neighbours(has_nso=False)
    process = enforcing(world)
    process.start()
    return process


def annotations_of(found: JsonObject) -> JsonObject:
    return member_object(member_object(found, "metadata"), "annotations")


def finalizers_of(found: JsonObject) -> object:
    return member_object(found, "metadata").get("finalizers", [])


async def uids(world: World, plane: str = CELL) -> dict[str, str]:
    return {
        member_text(member_object(one, "metadata"), "name"): uid_of(one)
        for one in await world.listed(plane, INSTANCE)
    }


@pytest.mark.spec("OU-03", "C-23")
def test_every_instance_is_kept_and_its_template_is_recorded_beside_their_hash() -> None:
    async def scenario(world: World) -> None:
        await take_over(world)
        before = await uids(world)
        await world.sleep(600)
        assert await uids(world) == before
        for name in (*RUNNING, WAITING):
            found = await world.instance(name)
            controller = member_object(spec_of(found), "controller")
            assert member_text(controller, "templateHash") == THEIR_HASH
            adopted = annotations_of(found)[labels.ADOPTED_TEMPLATE_HASH]
            assert str(adopted).startswith("v1-")
        for name, running in zip(DEPLOYMENTS, (2, 1), strict=True):
            status = status_of(await world.deployment(name))
            assert member_int(status, "updatedReplicas") == running
            assert member_int(status, "readyReplicas") == running
        assert condition_of(await world.deployment("api-p-dfw"), "Ready")[0] == "True"
        # The denied claim is asked for again on its schedule; nothing else is written.
        assert {one.address.plane for one in await world.rests()} == {PROJECT}

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03")
def test_no_status_that_a_user_reads_turns_during_the_takeover() -> None:
    async def scenario(world: World) -> None:
        await take_over(world)
        for _ in range(200):
            for name in RUNNING:
                found = await world.instance(name)
                for kind in ("Ready", "QuotaGranted", "Available", "Programmed"):
                    assert condition_of(found, kind)[0] == "True", (name, kind)
                assert gates_of(found) == []
            held = await world.instance(WAITING)
            assert condition_of(held, "QuotaGranted")[:2] == ("False", "QuotaExceeded")
            assert gates_of(held) == ["Quota"]
            api = await world.deployment("api-p-dfw")
            assert condition_of(api, "ReplicasReady")[0] == "True"
            assert condition_of(api, "Available")[0] == "True"
            await world.sleep(0.1)

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03", "Q-34", "Q-43")
def test_a_granted_claim_without_uid_is_adopted_and_its_quota_is_never_given_back() -> None:
    async def scenario(world: World) -> None:
        process = await take_over(world)
        before = await claims(world)
        await world.sleep(600)
        after = await claims(world)
        for name in RUNNING:
            claim = f"instance-{name}"
            assert uid_of(after[claim]) == uid_of(before[claim])
            assert spec_of(after[claim]) == spec_of(before[claim])
            assert recorded_uid(after[claim]) == uid_of(await world.instance(name))
        gone = [one.key for one in claim_commits(world) if not one.after]
        assert not [key for key in gone if key.endswith(RUNNING)]
        assert process.measures.total("compute_quota_claims_adopted_total") >= len(RUNNING)
        assert (await quota_of(world, WAITING))[:2] == ("False", "QuotaExceeded")

    play(scenario, has_networking=False)


# A denied claim, which has reserved its other parts: only instances are short.
AMPLE: Final = {**times(9), labels.INSTANCES_RESOURCE: len(RUNNING)}
DENIED: Final = f"instance-{WAITING}"


async def buckets(world: World) -> dict[str, tuple[int, int]]:
    """Limit and allocated amount by resource type."""
    found = await milo_of(world).inside().list(BUCKETS)
    return {
        member_text(member_object(one, "spec"), "resourceType"): (
            member_int(member_object(one, "status"), "limit"),
            member_int(member_object(one, "status"), "allocated"),
        )
        for one in found.items
    }


async def denied_uid(world: World) -> str:
    """The UID of the denied claim; empty where there is none."""
    found = (await claims(world)).get(DENIED)
    return uid_of(found) if found is not None else ""


def asked_again(world: World, before: str) -> Callable[[], Awaitable[bool]]:
    """For `eventually`: the denied claim was deleted and made again."""

    async def is_so() -> bool:
        made = [one for one in claim_commits(world) if one.after and one.key.endswith(DENIED)]
        return uid_of(decode_json_object(made[-1].after)) != before

    return is_so


@pytest.mark.spec("OU-03", "Q-29")
def test_a_denied_claim_is_kept_with_its_reservation_and_asked_for_again_later() -> None:
    async def scenario(world: World) -> None:
        process = await take_over(world, budget=AMPLE)
        held, used = await claims(world), await buckets(world)
        assert used[labels.VCPUS_RESOURCE][1] == 1000 * (len(RUNNING) + 1)
        assert not is_granted(held[DENIED])
        for _ in range(600):
            await world.sleep(1)
            assert await buckets(world) == used
        after = await claims(world)
        assert {name: uid_of(one) for name, one in after.items()} == {
            name: uid_of(one) for name, one in held.items()
        }
        assert recorded_uid(after[DENIED]) == uid_of(await world.instance(WAITING))
        assert [one.key for one in claim_commits(world) if not one.after] == []
        # From its first own attempt on it is a claim like any other: denied, it goes at once.
        old = uid_of(held[DENIED])
        await world.eventually(asked_again(world, old), within=1200)
        await world.eventually(has_claims(world, *(f"instance-{name}" for name in RUNNING)))
        recreated = process.measures.total("compute_quota_claims_recreated_total", reason="denied")
        assert recreated == 1
        assert (await quota_of(world, WAITING))[:2] == ("False", "QuotaExceeded")
        assert (await buckets(world))[labels.VCPUS_RESOURCE][1] == 1000 * len(RUNNING)

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03", "Q-52")
def test_a_restart_meanwhile_keeps_the_denied_claim_and_does_not_forget_it() -> None:
    async def scenario(world: World) -> None:
        process = await take_over(world, budget=AMPLE)
        old = await denied_uid(world)
        await world.sleep(500)
        await process.kill()
        enforcing(world, "second").start()
        for _ in range(600):
            await world.sleep(1)
            assert await denied_uid(world) == old
        assert claim_writes(world, identity="second") == []
        await world.eventually(asked_again(world, old), within=1200)

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03", "Q-38")
def test_a_kept_claim_goes_with_its_instance() -> None:
    async def scenario(world: World) -> None:
        await take_over(world, budget=AMPLE)
        await world.sleep(60)
        assert await denied_uid(world)
        fewer: JsonObject = {"spec": {"scaleSettings": {"minReplicas": 1}}}
        await world.patch(CELL, DEPLOYMENT, "extra-p-dfw", fewer)
        await world.eventually(
            has_claims(world, *(f"instance-{name}" for name in RUNNING)), within=30
        )
        assert (await buckets(world))[labels.VCPUS_RESOURCE][1] == 1000 * len(RUNNING)

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03", "Q-34")
def test_the_successor_of_an_instance_whose_claim_is_kept_is_denied_as_any_other() -> None:
    async def scenario(world: World) -> None:
        await take_over(world, budget=AMPLE)
        await world.sleep(60)
        old, before = await denied_uid(world), await uids(world)
        stamp: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
        await world.patch(CELL, DEPLOYMENT, "extra-p-dfw", {"spec": {"template": stamp}})
        await world.eventually(asked_again(world, old), within=120)
        assert (await uids(world))[WAITING] != before[WAITING]
        assert most_claims_at_once(world) == 1

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03")
def test_a_kept_claim_of_another_size_is_replaced_at_once() -> None:
    async def scenario(world: World) -> None:
        await take_over(world, budget=AMPLE)
        await world.sleep(60)
        old = await denied_uid(world)
        await resize(world, name="extra-p-dfw")
        await world.eventually(asked_again(world, old), within=120)

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03", "Q-27")
def test_a_kept_claim_that_the_quota_service_grants_after_all_starts_its_instance() -> None:
    async def scenario(world: World) -> None:
        await take_over(world, budget=AMPLE)
        await world.sleep(60)
        milo_of(world).milo.options.pause()
        found = (await claims(world))[DENIED]
        granted: JsonObject = {
            "type": "Granted",
            "status": "True",
            "reason": "QuotaAvailable",
            "message": "Claim granted",
            "lastTransitionTime": "2026-03-01T00:00:00Z",
        }
        allocations: list[Json] = [
            {
                "resourceType": one["resourceType"],
                "allocatedAmount": one["amount"],
                "status": "Granted",
                "reason": "QuotaAvailable",
                "message": "Capacity reserved",
                "lastTransitionTime": "2026-03-01T00:00:00Z",
            }
            for one in member_list(spec_of(found), "requests")
            if isinstance(one, dict)
        ]
        status: JsonObject = {"conditions": [granted], "allocations": allocations}
        await milo_of(world).inside().update_status(CLAIMS, {**found, "status": status})
        await world.eventually(says(world, "True", "QuotaAvailable", WAITING), within=5)
        await world.sleep(1800)
        assert await denied_uid(world) == uid_of(found)
        assert condition_of(await world.instance(WAITING), "Ready")[0] == "True"

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03")
def test_more_quota_starts_what_waited_under_the_older_operator() -> None:
    async def scenario(world: World) -> None:
        await take_over(world)
        await world.sleep(5)
        await milo_of(world).grant(times(2), "more")
        await world.eventually(lambda: world.is_converged("extra-p-dfw"), within=1800)
        assert (await uids(world)).keys() >= {*RUNNING, WAITING, "extra-p-dfw-2"}

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03")
def test_a_restart_afterwards_rolls_as_usual_on_the_same_claims() -> None:
    async def scenario(world: World) -> None:
        await take_over(world)
        await world.sleep(60)
        before, claimed = await uids(world), await claims(world)
        stamp = {labels.RESTARTED_AT: "2026-11-18T00:00:00Z"}
        template: JsonObject = {"metadata": {"annotations": {**stamp}}}
        await world.patch(CELL, DEPLOYMENT, "api-p-dfw", {"spec": {"template": template}})
        await world.sleep(1)
        await world.eventually(lambda: world.is_converged("api-p-dfw"))
        after = await uids(world)
        for name in ("api-p-dfw-0", "api-p-dfw-1"):
            assert after[name] != before[name]
            found = await world.instance(name)
            controller = member_object(spec_of(found), "controller")
            assert member_text(controller, "templateHash").startswith("v1-")
            assert labels.ADOPTED_TEMPLATE_HASH not in annotations_of(found)
            claim = f"instance-{name}"
            assert uid_of((await claims(world))[claim]) == uid_of(claimed[claim])
        assert after["extra-p-dfw-0"] == before["extra-p-dfw-0"]

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03")
def test_an_instance_that_differs_from_the_template_is_rolled() -> None:
    async def scenario(world: World) -> None:
        await world.add_milo(BUDGET)
        await world.federate()
        await Installation(world).plant()
        runtime: JsonObject = {"resources": {"instanceType": "datumcloud/d1-standard-4"}}
        await world.patch(CELL, INSTANCE, "api-p-dfw-1", {"spec": {"runtime": runtime}})
        before = await uids(world)
        world.provider.options.start_at_once()
        world.start_neighbours(has_nso=False)
        world.process().start()
        await world.eventually(lambda: world.is_converged("api-p-dfw"))
        after = await uids(world)
        assert after["api-p-dfw-1"] != before["api-p-dfw-1"]
        assert after["api-p-dfw-0"] == before["api-p-dfw-0"]

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03", "C-71")
def test_copies_on_the_hub_are_adopted_in_their_place() -> None:
    async def scenario(world: World) -> None:
        await take_over(world)
        before = await uids(world, HUB)
        await world.eventually(lambda: world.has_copies(*RUNNING, WAITING))
        await world.sleep(60)
        assert await uids(world, HUB) == before
        for name in RUNNING:
            copy = await world.copy(name)
            found = await world.instance(name)
            assert annotations_of(copy)[labels.INSTANCE_UID] == uid_of(found)
            assert member_object(member_object(copy, "metadata"), "labels")[labels.CELL] == "dfw-1"

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-04", "C-65", "C-47")
def test_their_finalizers_go_and_a_deleted_deployment_leaves_nothing() -> None:
    async def scenario(world: World) -> None:
        await take_over(world)
        for name in (*RUNNING, WAITING):
            held = finalizers_of(await world.instance(name))
            assert isinstance(held, list)
        await world.sleep(5)
        for name in (*RUNNING, WAITING):
            held = finalizers_of(await world.instance(name))
            assert not {*OLD_FINALIZERS} & {*(held if isinstance(held, list) else [])}
        for name in DEPLOYMENTS:
            # Standing: what it stands for is not done.
            assert finalizers_of(await world.deployment(name)) == [labels.WORKLOAD_FINALIZER]
            await world.withdraw(name)
        for name in DEPLOYMENTS:
            await world.eventually(partial(world.is_gone, CELL, DEPLOYMENT, name))
        assert await world.instances() == []
        await world.eventually(world.has_no_copies, within=300)
        await world.sleep(120)
        assert await claims(world) == {}
        for request in world.writes("operator", plane=CELL, kind=DEPLOYMENT.kind):
            assert request.address.verb in {"update", "patch"}

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-04")
def test_the_finalizer_of_a_deployment_stays_while_an_instance_of_it_does() -> None:
    async def scenario(world: World) -> None:
        world.provider.options.stop_delay = timedelta(seconds=30)
        await take_over(world)
        await world.sleep(5)
        await world.withdraw("api-p-dfw")
        await world.sleep(20)
        assert finalizers_of(await world.deployment("api-p-dfw")) == [labels.WORKLOAD_FINALIZER]
        await world.eventually(lambda: world.is_gone(CELL, DEPLOYMENT, "api-p-dfw"))

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-04")
def test_an_unknown_finalizer_is_named_on_instance_and_deployment_and_in_events() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        await world.deliver("web", 1)
        await world.eventually(world.is_converged)
        hold: JsonObject = {"metadata": {"finalizers": ["example.com/hold"]}}
        await world.patch(CELL, DEPLOYMENT, "web", hold)
        both: JsonObject = {
            "metadata": {"finalizers": ["example.com/hold", labels.PROVIDER_FINALIZER]}
        }
        await world.patch(CELL, INSTANCE, "web-0", both)
        await world.withdraw("web")
        await world.sleep(30)
        assert condition_of(await world.instance("web-0"), "Ready") == (
            "False",
            "Terminating",
            'Instance is being deleted; deletion waits for finalizer "example.com/hold"',
        )
        told = (
            "False",
            "DeletionBlocked",
            'Deployment is being deleted; deletion waits for finalizer "example.com/hold"',
        )
        found = await world.deployment("web")
        assert condition_of(found, "Ready") == told
        assert condition_of(found, "ReplicasReady") == told
        for kind in (INSTANCE, DEPLOYMENT):
            assert process.reasons(kind=kind).count("DeletionBlocked") == 1
        assert await world.rests() == []
        # What holds them is not ours to remove; once it is gone, they go.
        nothing: JsonObject = {"metadata": {"finalizers": None}}
        await world.patch(CELL, INSTANCE, "web-0", nothing)
        await world.patch(CELL, DEPLOYMENT, "web", nothing)
        await world.eventually(lambda: world.is_gone(CELL, DEPLOYMENT, "web"))

    play(scenario)
