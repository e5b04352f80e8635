"""Policies on simulated planes: they exist exactly while a deployment needs them."""

from __future__ import annotations

import pytest
from management_builders.documents import a_cluster_document, a_deployment_document
from management_builders.hub_script import PROJECT, WD, WD_READY, Hub, play_hub
from management_builders.world import shown, spec_of, uid_of

from compute_api_types import labels, names, reasons
from compute_management_operator.hub.metrics import AMBIGUOUS_CITIES, POLICIES
from compute_management_operator.planes import CLUSTER, DEPLOYMENT, HUB, POLICY
from compute_operator_kit.core.json import JsonObject
from compute_sim_planes.faults.plans import Action, Fault, Point

SECOND_OF_LOWER = names.derive_policy_names("lax")[1]


async def policy(hub: Hub, name: str = "city-dfw") -> JsonObject:
    return await hub.world.get(HUB, POLICY, name, await hub.namespace())


@pytest.mark.spec("M-44")
def test_policy_goes_with_the_last_deployment_of_its_city_and_not_before() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.federate("other-us-dfw")
        first = uid_of(await policy(hub))
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.sleep(5)
        assert uid_of(await policy(hub)) == first
        assert not await hub.world.exists(PROJECT, DEPLOYMENT, WD)
        await hub.world.delete(PROJECT, DEPLOYMENT, "other-us-dfw")
        await hub.world.sleep(5)
        assert await hub.policies() == []

    play_hub(story)


@pytest.mark.spec("M-46")
def test_policy_that_is_going_is_not_used_and_made_anew_once_it_is_gone() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = await hub.namespace()
        held: JsonObject = {
            "metadata": {"finalizers": ["karmada.io/propagation-policy-controller"]}
        }
        await hub.world.patch(HUB, POLICY, "city-dfw", held, place)
        await hub.world.delete(HUB, POLICY, "city-dfw", place)
        before = len(hub.world.writes(plane=HUB))
        await hub.world.create(PROJECT, a_deployment_document("other-us-dfw"))
        await hub.world.sleep(30)
        assert not await hub.has_copy("other-us-dfw")
        assert shown(hub.world.writes(plane=HUB)[before:]) == []
        released: JsonObject = {"metadata": {"finalizers": None}}
        await hub.world.patch(HUB, POLICY, "city-dfw", released, place)
        await hub.world.eventually(lambda: hub.has_copy("other-us-dfw"), within=5)
        assert await hub.policies() == ["city-dfw"]

    play_hub(story)


@pytest.mark.spec("M-47")
def test_copy_that_is_going_keeps_no_policy() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = await hub.namespace()
        held: JsonObject = {"metadata": {"finalizers": ["somebody.example/slow"]}}
        await hub.world.patch(HUB, DEPLOYMENT, WD, held, place)
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.sleep(5)
        assert await hub.policies() == []
        assert await hub.has_copy()
        await hub.world.patch(HUB, DEPLOYMENT, WD, {"metadata": {"finalizers": None}}, place)
        await hub.world.sleep(5)

    play_hub(story)


@pytest.mark.spec("M-48")
def test_two_spellings_of_one_city_have_a_policy_each() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate("a-us-lax", "LAX")
        await hub.federate("b-us-lax", "lax")
        assert await hub.policies() == ["city-lax", SECOND_OF_LOWER]
        second = uid_of(await policy(hub, SECOND_OF_LOWER))
        await hub.report(*WD_READY, name="a-us-lax")
        await hub.report(*WD_READY, name="b-us-lax")
        await hub.world.sleep(5)
        assert shown(await hub.world.rests()) == []
        await hub.world.delete(PROJECT, DEPLOYMENT, "a-us-lax")
        await hub.world.sleep(5)
        assert await hub.policies() == [SECOND_OF_LOWER]
        assert uid_of(await policy(hub, SECOND_OF_LOWER)) == second

    play_hub(story)


@pytest.mark.spec("M-49")
@pytest.mark.fault("A6")
def test_crash_between_the_two_deletes_leaves_no_policy_after_the_restart() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.sleep(5)
        assert hub.process.life.is_dead
        assert await hub.has_no_copy()
        assert await hub.policies() == ["city-dfw"]
        await hub.process.kill()
        hub.world.process("second").start()
        await hub.world.eventually(lambda: hub.world.is_gone(PROJECT, DEPLOYMENT, WD), within=10)
        assert await hub.policies() == []

    crash = Fault(
        "A6",
        Action.CRASH_BEFORE,
        Point(plane=HUB, verb="delete", kind="PropagationPolicy"),
    )
    play_hub(story, crash, is_clean=False)


@pytest.mark.spec("M-50")
def test_foreign_annotation_stays_and_an_extra_selector_goes() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.world.sleep(5)
        place = await hub.namespace()
        noted: JsonObject = {"metadata": {"annotations": {"example.com/theirs": "1"}}}
        await hub.world.patch(HUB, POLICY, "city-dfw", noted, place)
        assert shown(await hub.world.rests(60)) == []
        selectors = spec_of(await policy(hub))["resourceSelectors"]
        assert isinstance(selectors, list)
        extra: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
        widened: JsonObject = {"spec": {"resourceSelectors": [*selectors, extra]}}
        await hub.world.patch(HUB, POLICY, "city-dfw", widened, place)
        await hub.world.sleep(2)
        assert spec_of(await policy(hub))["resourceSelectors"] == selectors

    play_hub(story)


@pytest.mark.spec("M-91")
def test_city_of_two_clusters_is_recorded_once_and_withholds_nothing() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.world.create(HUB, a_cluster_document("dfw-2"))
        await hub.world.sleep(10)
        gauges = hub.process.measures.gauges
        assert gauges[(AMBIGUOUS_CITIES, ())] == 1
        assert gauges[(POLICIES, ())] == 1
        reported = [
            emit for emit in hub.process.recorder.emitted if emit.reason == reasons.AMBIGUOUS_CITY
        ]
        assert [(emit.key.name, emit.type, emit.message) for emit in reported] == [
            (
                "city-dfw",
                "Warning",
                'City code "DFW" is carried by 2 clusters: dfw-1, dfw-2; each runs every replica',
            )
        ]
        assert await hub.has_copy()
        assert shown(await hub.world.rests()) == []
        assert hub.process.reasons().count(reasons.AMBIGUOUS_CITY) == 1
        moved: JsonObject = {"metadata": {"labels": {labels.TOPOLOGY_CITY_CODE: "LHR"}}}
        await hub.world.patch(HUB, CLUSTER, "dfw-2", moved)
        await hub.world.sleep(10)
        assert gauges[(AMBIGUOUS_CITIES, ())] == 0
        await hub.world.uninstall(HUB, CLUSTER)
        await hub.world.sleep(60)
        assert hub.process.reasons().count(reasons.AMBIGUOUS_CITY) == 1
        assert gauges[(AMBIGUOUS_CITIES, ())] == 0

    play_hub(story)


def test_policies_of_a_project_that_is_away_stay() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = await hub.namespace()
        hub.world.links[PROJECT].cut()
        await hub.world.sleep(30)
        await hub.world.delete(HUB, DEPLOYMENT, WD, place)
        await hub.world.sleep(60)
        assert await hub.policies() == ["city-dfw"]
        hub.world.links[PROJECT].heal()
        await hub.world.eventually(hub.has_copy, within=60)

    play_hub(story)


def test_policies_of_a_project_that_is_away_at_the_start_stay() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = await hub.namespace()
        await hub.process.stop()
        await hub.world.delete(HUB, DEPLOYMENT, WD, place)
        hub.world.links[PROJECT].cut()
        second = hub.world.process("second")
        second.start()
        await hub.world.sleep(120)
        assert await hub.policies() == ["city-dfw"]
        hub.world.links[PROJECT].heal()
        await hub.world.eventually(hub.has_copy, within=60)
        assert hub.world.writes("second", kind="PropagationPolicy") == []

    play_hub(story)
