"""Projects without Workloads: two watch streams, and nothing is missed or refused because of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from management_builders.documents import (
    a_claim_document,
    a_location_document,
    a_workload_document,
)
from management_builders.hub_script import PROJECT, WD, Hub, play_hub
from management_builders.single import play_single
from management_builders.world import Process, World, a_review, condition_of, play, settings_of

from compute_api_types import labels
from compute_management_operator.admission.delays import ANSWER_WITHIN, KEPT_FOR
from compute_management_operator.admission.idle_projects import MOST_PROJECTS
from compute_management_operator.admission.review import (
    AdmissionAllowed,
    AdmissionRefused,
    AdmissionResult,
    AdmissionUndecided,
)
from compute_management_operator.hub.metrics import UNBACKED_CLAIMS
from compute_management_operator.planes import (
    DEPLOYMENT,
    INSTANCE,
    LOCATION,
    NAMESPACE,
    SINGLE,
    WORKLOAD,
)
from compute_operator_kit.core.json import JsonObject, decode_json_object, encode
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.planes.delays import CLOSE_AFTER
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point

IDLE = ["Workload", "WorkloadDeployment"]
IN_USE = ["Instance", "Location", "Network", *IDLE]
UNAVAILABLE = 'project "acme" is not available for admission yet, try again'
MINUTES = CLOSE_AFTER.total_seconds() / 60


def streams(world: World, plane: str = PROJECT) -> list[str]:
    return sorted(kind.kind for kind in world.planes[plane].watched_kinds())


def lists(world: World, *kinds: str) -> Counter[str]:
    """How often the operator listed these kinds of the project."""
    listed = Counter(
        one.address.kind
        for one in world.requests()
        if one.address.plane == PROJECT and one.address.verb == "list"
    )
    return Counter({kind: listed[kind] for kind in kinds})


async def engage(world: World, *cities: str) -> Process:
    await world.add_project(PROJECT, cities=cities or ("DFW",))
    process = world.process()
    process.start()
    await world.sleep(2)
    return process


async def admit(process: Process, city: str = "DFW") -> AdmissionResult:
    extra: JsonObject = {
        labels.PARENT_NAME_EXTRA: [PROJECT],
        labels.PARENT_TYPE_EXTRA: ["Project"],
    }
    return await process.admit(a_review(a_workload_document("web", {"us": (city,)}), extra))


def message_of(answer: AdmissionResult) -> object:
    assert not isinstance(answer, AdmissionAllowed)
    return decode_json_object(encode(answer.status))["message"]


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.spec("M-101")
def test_an_idle_project_has_two_streams_and_five_from_its_first_workload_on() -> None:
    async def scenario(world: World) -> None:
        await engage(world)
        assert streams(world) == IDLE
        await world.create(PROJECT, a_workload_document())
        await world.eventually(lambda: world.exists(PROJECT, DEPLOYMENT, "web-us-dfw"), within=2)
        assert streams(world) == IN_USE
        await world.sleep(MINUTES * 60 * 3)
        assert streams(world) == IN_USE
        await world.delete(PROJECT, WORKLOAD, "web")
        await world.eventually(lambda: world.is_gone(PROJECT, WORKLOAD, "web"))
        await world.sleep(MINUTES * 60 - 5)
        assert streams(world) == IN_USE
        await world.sleep(10)
        assert streams(world) == IDLE

    play(scenario)


@pytest.mark.spec("M-101")
def test_a_project_that_is_used_again_within_ten_minutes_lists_nothing_again() -> None:
    async def scenario(world: World) -> None:
        await engage(world)
        await world.create(PROJECT, a_workload_document())
        await world.sleep(5)
        opened = ("Instance", "Location", "Network")
        before = lists(world, *opened)
        for _ in range(3):
            await world.delete(PROJECT, WORKLOAD, "web")
            await world.sleep(MINUTES * 60 - 30)
            await world.create(PROJECT, a_workload_document())
            await world.sleep(5)
        assert await world.exists(PROJECT, DEPLOYMENT, "web-us-dfw")
        assert lists(world, *opened) == before

    play(scenario)


@pytest.mark.spec("M-101")
def test_without_a_workload_a_deployment_alone_opens_the_streams() -> None:
    async def story(hub: Hub) -> None:
        assert streams(hub.world) == IDLE
        await hub.federate()
        assert streams(hub.world) == IN_USE

    play_hub(story)


@pytest.mark.spec("M-101")
def test_a_restart_with_workloads_opens_all_and_writes_nothing() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        await hub.process.stop()
        second = hub.world.process("second")
        second.start()
        await hub.world.sleep(5)
        assert streams(hub.world) == IN_USE
        await hub.world.sleep(30)
        assert hub.world.writes("second") == []

    play_hub(story)


@pytest.mark.spec("M-101")
def test_an_idle_plane_without_networking_kinds_is_not_asked_for_them() -> None:
    async def scenario(world: World) -> None:
        await world.add_project(PROJECT, has_networking=False)
        world.process().start()
        await world.sleep(600)
        assert lists(world, "Location", "Network").total() == 0

    play(scenario)


# --- the same writes ------------------------------------------------------------------------------


@pytest.mark.spec("M-104")
def test_the_first_workload_of_an_idle_project_takes_the_same_writes_as_any_other() -> None:
    async def scenario(world: World, _: Process) -> None:
        written: list[list[tuple[str, str, str]]] = []
        for _number in range(2):
            before = len(world.writes())
            await world.create(SINGLE, a_workload_document())
            await world.sleep(20)
            addresses = [one.address for one in world.writes()[before:]]
            written.append([(one.verb, one.kind, one.subresource) for one in addresses])
            await world.delete(SINGLE, WORKLOAD, "web")
            await world.eventually(lambda: world.is_gone(SINGLE, WORKLOAD, "web"))
        assert written[0] == written[1]
        assert written[0]

    play_single(scenario)


@pytest.mark.spec("M-104")
def test_the_first_workload_is_placed_within_a_second() -> None:
    async def scenario(world: World) -> None:
        await engage(world)
        await world.create(PROJECT, a_workload_document())
        took = await world.eventually(lambda: world.exists(PROJECT, DEPLOYMENT, "web-us-dfw"))
        assert took < 1

    play(scenario)


@pytest.mark.spec("M-104")
def test_a_first_workload_whose_locations_cannot_be_read_gets_no_verdict_until_they_can() -> None:
    failing = Fault(
        "C4",
        Action.ERROR,
        Point(plane=PROJECT, verb="list", kind="Location", times=4),
        Parameters(status=500),
    )

    async def scenario(world: World) -> None:
        await engage(world)
        await world.create(PROJECT, a_workload_document())
        await world.sleep(1)
        existing = await world.get(PROJECT, WORKLOAD, "web")
        assert "NoMatchingLocation" not in str(condition_of(existing, "Available"))
        await world.eventually(lambda: world.exists(PROJECT, DEPLOYMENT, "web-us-dfw"))

    play(scenario, failing)


# --- what is left behind --------------------------------------------------------------------------


@pytest.mark.spec("M-103")
def test_a_projection_that_a_former_process_left_in_an_idle_project_is_removed() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        await hub.process.stop()
        shown = f"{WD}-0"
        # No owner, so that the garbage collector of the project leaves it alone.
        await hub.world.patch(PROJECT, INSTANCE, shown, {"metadata": {"ownerReferences": None}})
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, {"metadata": {"finalizers": None}})
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.unshow(shown)
        assert await hub.world.names(PROJECT, INSTANCE) == [shown]
        hub.world.process("second").start()
        await hub.world.sleep(2)
        assert streams(hub.world) == ["Instance", *IDLE]
        await hub.world.eventually(lambda: hub.world.is_gone(PROJECT, INSTANCE, shown), within=90)
        await hub.world.sleep(2 * MINUTES * 60)
        assert streams(hub.world) == IDLE

    play_hub(story)


@pytest.mark.spec("M-103")
def test_a_hub_instance_of_an_idle_project_is_quarantined_and_never_shown() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.show()
        await hub.world.sleep(2)
        await hub.process.stop()
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, {"metadata": {"finalizers": None}})
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.hold_copy()
        second = hub.world.process("second")
        second.start()
        await hub.world.sleep(20 * 60)
        assert await hub.world.names(PROJECT, INSTANCE) == []
        assert "QuarantinedDeploymentAbsent" in second.reasons()

    play_hub(story, is_clean=False)


@pytest.mark.spec("M-103")
def test_claims_of_an_idle_project_are_still_swept() -> None:
    async def story(hub: Hub) -> None:
        await hub.world.install(PROJECT, "quota.miloapis.com")
        await hub.world.create(PROJECT, a_claim_document("instance-gone-0", "dfw-1"))
        await hub.world.sleep(40 * 60)
        assert streams(hub.world) == IDLE
        assert hub.process.measures.gauges[UNBACKED_CLAIMS, (("cell", "dfw-1"),)] == 1

    play_hub(story)


@pytest.mark.spec("M-103")
def test_the_hub_namespace_of_an_idle_project_goes_with_its_source() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        name = await hub.namespace()
        await world.delete(PROJECT, DEPLOYMENT, WD)
        await world.eventually(hub.has_no_copy)
        await world.sleep(2 * MINUTES * 60)
        assert streams(world) == IDLE
        hub.strike_namespace("default")

        async def is_reclaimed() -> bool:
            return name not in await world.names("@hub", NAMESPACE)

        await world.eventually(is_reclaimed, within=3 * 60 * 60)

    play_hub(story)


# --- admission ------------------------------------------------------------------------------------


@pytest.mark.spec("M-102")
def test_the_locations_of_an_idle_project_are_read_once_in_ten_seconds() -> None:
    async def scenario(world: World) -> None:
        process = await engage(world)
        for _ in range(5):
            assert isinstance(await admit(process), AdmissionAllowed)
            assert isinstance(await admit(process, "LHR"), AdmissionRefused)
        assert lists(world, "Location", "Network") == Counter(Location=1, Network=1)
        await world.create(PROJECT, a_location_document("LHR"))
        await world.sleep(KEPT_FOR.total_seconds())
        assert isinstance(await admit(process, "LHR"), AdmissionAllowed)
        assert lists(world, "Location") == Counter(Location=2)
        assert streams(world) == IDLE, "a review opens no stream"

    play(scenario)


@pytest.mark.spec("M-102")
def test_reviews_at_the_same_time_share_one_read() -> None:
    async def scenario(world: World) -> None:
        process = await engage(world)
        answers = await asyncio.gather(*(admit(process) for _ in range(20)))
        assert all(isinstance(one, AdmissionAllowed) for one in answers)
        assert lists(world, "Location", "Network") == Counter(Location=1, Network=1)

    play(scenario)


@pytest.mark.spec("M-102")
@pytest.mark.parametrize("action", [Action.ERROR, Action.TIMEOUT])
def test_locations_of_an_idle_project_that_cannot_be_read_are_answered_500(action: Action) -> None:
    failing = Fault(
        "C4",
        action,
        Point(plane=PROJECT, verb="list", kind="Location", times=0),
        Parameters(status=500),
    )

    async def scenario(world: World) -> None:
        process = await engage(world)
        begun = world.clock.monotonic()
        answer = await admit(process)
        assert world.clock.monotonic() - begun <= ANSWER_WITHIN + timedelta(milliseconds=100)
        assert isinstance(answer, AdmissionUndecided)
        assert message_of(answer) == UNAVAILABLE
        assert len(process.operator.admission.idle_projects) == 0, "a failure is not kept"
        await world.sleep(10)

    play(scenario, failing)


@pytest.mark.spec("M-102")
def test_where_networks_are_not_served_no_right_to_them_is_reviewed() -> None:
    async def scenario(world: World) -> None:
        await world.add_project(PROJECT, has_networking=False)
        process = world.process()
        process.start()
        await world.sleep(2)
        assert isinstance(await admit(process, "TYCHO"), AdmissionAllowed)
        assert [one for one in world.requests() if "reviews" in one.address.resource] == []

    play(scenario)


@pytest.mark.spec("M-102")
def test_a_kind_that_was_served_and_is_missing_for_a_moment_does_not_count_as_off() -> None:
    async def scenario(world: World) -> None:
        process = await engage(world)
        await world.create(PROJECT, a_workload_document())
        await world.sleep(5)
        await world.delete(PROJECT, WORKLOAD, "web")
        await world.sleep(2 * MINUTES * 60)
        assert streams(world) == IDLE
        await world.uninstall(PROJECT, LOCATION)
        await world.sleep(1)
        answer = await admit(process, "TYCHO")
        assert isinstance(answer, AdmissionUndecided)
        assert message_of(answer) == UNAVAILABLE

    play(scenario)


@pytest.mark.spec("M-102")
def test_with_mode_on_a_project_without_locations_cannot_be_decided() -> None:
    async def scenario(world: World) -> None:
        await world.add_project(PROJECT, has_networking=False)
        process = world.process(settings=settings_of(networking="on"))
        process.start()
        await world.sleep(2)
        assert isinstance(await admit(process), AdmissionUndecided)

    play(scenario)


@pytest.mark.spec("M-102")
def test_facts_of_at_most_256_projects_are_kept() -> None:
    async def scenario(world: World) -> None:
        process = await engage(world)
        reads = process.operator.admission.idle_projects
        facts = await reads.read(PlaneName(PROJECT))
        for number in range(MOST_PROJECTS + 10):
            reads.keep((PlaneName(PROJECT), str(number)), facts)
        assert len(reads) == MOST_PROJECTS

    play(scenario)
