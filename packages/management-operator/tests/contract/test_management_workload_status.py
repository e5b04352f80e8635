"""The status of a Workload on a simulated plane, and how soon it is written."""

from __future__ import annotations

import pytest
from management_builders.documents import (
    a_condition_document,
    a_deployment_status,
    a_placement_document,
    a_template_document,
    a_workload_document,
)
from management_builders.single import edit_placements, play_single
from management_builders.world import (
    Process,
    World,
    condition_of,
    placement_of,
    play,
    single_settings,
    spec_of,
    status_of,
)

from compute_api_types import labels
from compute_management_operator.planes import (
    DEPLOYMENT,
    SINGLE,
    WORKLOAD,
)
from compute_management_operator.workload import observe
from compute_operator_kit.cache.optional_kinds import OptionalKindsReader
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import Json, member_list, member_object
from compute_operator_kit.core.keys import ObjectKey
from compute_sim_planes.history import Request


@pytest.mark.spec("M-19")
def test_a_shared_blocking_reason_reaches_placement_and_workload() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "ORD")}))
        await world.sleep(1)
        message = "2 of 2 desired instances pending quota"
        for name in ("web-us-dfw", "web-us-ord"):
            await tell(world, name, "QuotaNotGranted", message)
        await world.sleep(1)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        for place in (existing, placement_of(existing, "us")):
            for kind in ("Available", "Ready"):
                assert condition_of(place, kind) == ("False", "QuotaNotGranted", message)
        generations = [
            one["observedGeneration"]
            for one in member_list(status_of(existing), "conditions")
            if isinstance(one, dict)
        ]
        assert generations == [1, 1]

    play_single(scenario)


def test_a_status_that_was_held_back_is_sent_without_another_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[ObjectKey] = []
    look = observe.observe

    def count(
        key: ObjectKey,
        caches: Caches,
        consulting: OptionalKindsReader,
        find: observe.FindHubNamespace,
    ) -> observe.ObservedWorkload | None:
        looks.append(key)
        return look(key, caches, consulting, find)

    monkeypatch.setattr(observe, "observe", count)

    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document("web"))
        await world.sleep(1)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert status_of(existing)["deployments"] == 1
        assert len(looks) == 2, "for the finalizer, and for the deployment with the status"

    play_single(scenario)


async def tell(world: World, name: str, reason: str, message: str = "") -> None:
    """What a cell would say about a deployment that does not run."""
    await world.set_status(
        SINGLE,
        DEPLOYMENT,
        name,
        a_deployment_status(
            a_condition_document("Available", "False", reason, message),
            a_condition_document("Ready", "False", reason, message),
        ),
    )


async def run(world: World, name: str, *, replicas: int = 1, observed: int = 1) -> None:
    """What a cell would say about a deployment that runs."""
    await world.set_status(
        SINGLE,
        DEPLOYMENT,
        name,
        a_deployment_status(
            a_condition_document("Available", "True", "StableInstanceFound"),
            a_condition_document("Ready", "True", "ReplicasAvailable"),
            observed=observed,
            replicas=replicas,
            desired=replicas,
            ready=replicas,
        ),
    )


@pytest.mark.spec("M-20")
def test_of_mixed_reasons_the_highest_rank_wins_and_ties_go_by_name() -> None:
    async def scenario(world: World, _: Process) -> None:
        placements = {"b": ("DFW", "ORD"), "a": ("LHR",)}
        await world.create(SINGLE, a_workload_document("web", placements))
        await world.sleep(1)
        await tell(world, "web-a-lhr", "InstancesProvisioning", "soon")
        await tell(world, "web-b-dfw", "ImageUnavailable", "no image in DFW")
        await tell(world, "web-b-ord", "ImageUnavailable", "no image in ORD")
        await world.sleep(1)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        stated = ("False", "ImageUnavailable", "no image in DFW")
        assert condition_of(existing, "Ready") == stated
        assert condition_of(existing, "Available") == stated
        await tell(world, "web-a-lhr", "InstanceCrashing", "crashes in LHR")
        await world.sleep(1)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert condition_of(existing, "Ready") == ("False", "InstanceCrashing", "crashes in LHR")

    play_single(scenario)


@pytest.mark.spec("M-21")
def test_one_running_deployment_makes_it_available_and_numbers_are_sums() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "ORD")}))
        await world.sleep(1)
        assert condition_of(await world.get(SINGLE, WORKLOAD, "web"), "Available")[1] == (
            "NoAvailablePlacements"
        )
        await run(world, "web-us-dfw", replicas=3)
        await run(world, "web-us-ord", replicas=2, observed=0)
        await world.sleep(1)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert condition_of(existing, "Available")[:2] == ("True", "AvailablePlacementFound")
        assert condition_of(existing, "Ready")[0] == "False"
        status = status_of(existing)
        assert (status["deployments"], status["replicas"], status["readyReplicas"]) == (2, 5, 5)
        assert (status["updatedReplicas"], status["currentReplicas"]) == (3, 3)
        held = {"metadata": {"finalizers": ["example.com/theirs"]}}
        await world.patch(SINGLE, DEPLOYMENT, "web-us-ord", held)
        await edit_placements(world, a_placement_document("us", ("DFW",)))
        await world.sleep(1)
        status = status_of(await world.get(SINGLE, WORKLOAD, "web"))
        assert (status["deployments"], status["replicas"]) == (2, 5)
        await world.patch(SINGLE, DEPLOYMENT, "web-us-ord", {"metadata": {"finalizers": []}})
        await world.sleep(1)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert (status_of(existing)["deployments"], status_of(existing)["replicas"]) == (1, 3)
        assert condition_of(existing, "Ready") == (
            "True",
            "PlacementsReady",
            "All deployments are ready",
        )

    play_single(scenario)


@pytest.mark.spec("M-22")
def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.sleep(10)
        since = await time_of(world, "Ready")
        await tell(world, "web-us-dfw", "ImageUnavailable")
        await world.sleep(10)
        assert await time_of(world, "Ready") == since
        await run(world, "web-us-dfw")
        await world.sleep(10)
        assert await time_of(world, "Ready") != since

    play_single(scenario)


async def time_of(world: World, kind: str) -> Json:
    conditions = member_list(status_of(await world.get(SINGLE, WORKLOAD, "web")), "conditions")
    return next(
        one["lastTransitionTime"]
        for one in conditions
        if isinstance(one, dict) and one["type"] == kind
    )


# --- provisional status ---------------------------------------------------------------------------


def status_writes(world: World) -> list[Request]:
    return [one for one in world.writes() if one.address.subresource == "status"]


@pytest.mark.spec("M-96")
def test_on_the_way_is_held_back_once_and_what_follows_goes_out_with_it() -> None:
    async def scenario(world: World, _: Process) -> None:
        begun = world.clock.now()
        await world.create(SINGLE, a_workload_document())
        await world.eventually(lambda: world.exists(SINGLE, DEPLOYMENT, "web-us-dfw"))
        await run(world, "web-us-dfw")
        await world.sleep(2)
        (reported,) = status_writes(world)
        assert (reported.at - begun).total_seconds() < 0.2

    play_single(scenario)


@pytest.mark.spec("M-96")
def test_on_the_way_is_shown_after_its_moment_however_often_it_changes() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.eventually(lambda: world.exists(SINGLE, DEPLOYMENT, "web-us-dfw"))
        begun = world.clock.now()
        for replicas in range(1, 10):
            await world.set_status(
                SINGLE, DEPLOYMENT, "web-us-dfw", {"replicas": replicas, "desiredReplicas": 9}
            )
            await world.sleep(0.05)
        first = status_writes(world)[0]
        assert 0.1 < (first.at - begun).total_seconds() < 0.3

    play_single(scenario)


@pytest.mark.spec("M-96")
@pytest.mark.parametrize(
    "reason", ["QuotaNotGranted", "SomethingNobodyKnows", "NoMatchingLocation"]
)
def test_any_other_reason_goes_out_at_once(reason: str) -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.sleep(1)
        before = len(status_writes(world))
        begun = world.clock.now()
        await tell(world, "web-us-dfw", reason, "told")
        await world.sleep(1)
        reported = status_writes(world)[before]
        assert (reported.at - begun).total_seconds() < 0.1

    play_single(scenario)


@pytest.mark.spec("M-96")
def test_the_loss_of_ready_goes_out_at_once() -> None:
    async def scenario(world: World, _: Process) -> None:
        await world.create(SINGLE, a_workload_document())
        await world.sleep(1)
        await run(world, "web-us-dfw")
        await world.sleep(1)
        before = len(status_writes(world))
        begun = world.clock.now()
        await tell(world, "web-us-dfw", "InstancesProvisioning", "again")
        await world.sleep(1)
        reported = status_writes(world)[before]
        assert (reported.at - begun).total_seconds() < 0.1

    play_single(scenario)


@pytest.mark.spec("M-96")
def test_without_settling_time_nothing_is_held_back() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        world.process(settings=single_settings(clients={"statusSettle": "0s"})).start()
        await world.sleep(1)
        begun = world.clock.now()
        await world.create(SINGLE, a_workload_document())
        await world.sleep(1)
        assert (status_writes(world)[0].at - begun).total_seconds() < 0.1

    play(scenario)


@pytest.mark.spec("M-96")
def test_a_crash_loses_nothing_that_was_held_back() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        first = world.process("first", settings=single_settings())
        first.start()
        await world.create(SINGLE, a_workload_document())
        await world.eventually(lambda: world.exists(SINGLE, DEPLOYMENT, "web-us-dfw"))
        await first.kill()
        world.process("second", settings=single_settings()).start()
        await world.sleep(2)
        existing = await world.get(SINGLE, WORKLOAD, "web")
        assert condition_of(existing, "Ready")[1] == "InstancesProvisioning"

    play(scenario)


# --- older servers --------------------------------------------------------------------------------


@pytest.mark.spec("M-100")
@pytest.mark.fault("E5")
def test_a_definition_that_prunes_what_we_write_costs_one_write_per_change() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        await world.forget_member(SINGLE, DEPLOYMENT, "spec", "template", "metadata")
        world.process(settings=single_settings()).start()
        template = a_template_document(annotations={labels.RESTARTED_AT: "2026-02-01T00:00:00Z"})
        await world.create(SINGLE, a_workload_document(template=template))
        await world.sleep(10)
        existing = await world.get(SINGLE, DEPLOYMENT, "web-us-dfw")
        assert "metadata" not in member_object(spec_of(existing), "template")
        assert await world.rests() == []
        before = len(world.writes(kind="WorkloadDeployment"))
        await edit_placements(world, a_placement_document("us", ("DFW",), replicas=2))
        await world.sleep(10)
        assert len(world.writes(kind="WorkloadDeployment")) == before + 1
        assert await world.rests() == []

    play(scenario)
