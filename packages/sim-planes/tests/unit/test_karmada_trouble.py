"""The simulated Karmada among mistakes: scripts that fail, members that refuse, things that come
late.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from karmada_builders.documents import (
    CITY,
    GADGETS,
    a_customization,
    a_free_definition,
    a_gadget,
    a_policy,
)
from karmada_builders.hands import COUNTING, size_of
from karmada_builders.virtual import (
    NS,
    START,
    World,
    deliver,
    has_size,
    interpret,
    is_ready,
    play,
)

from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.client import Client
from compute_sim_planes.clock import VirtualClock, run
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at
from compute_sim_planes.karmada.claims import find_claim
from compute_sim_planes.karmada.kinds import (
    CLUSTER_NAMESPACE,
    CLUSTERS,
    CUSTOMIZATIONS,
    EVENTS,
    POLICIES,
    SECRETS,
    WORKS,
)
from compute_sim_planes.karmada.metadata import labels_of
from compute_sim_planes.karmada.names import derive_work_name
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts
from compute_sim_planes.milo.conditions import find_condition, holds

WORK = derive_work_name("Gadget", NS, "web")


async def work_of(world: World) -> JsonObject:
    found = await world.hub.get(WORKS, WORK, "karmada-es-dfw-1")
    assert found is not None
    return found


async def reasons(world: World) -> set[str]:
    return {string_at(event, "reason") for event in (await world.hub.list(EVENTS)).items}


# scripts ------------------------------------------------------------------------------------------


def test_an_aggregation_that_fails_is_told_and_heals_with_its_script() -> None:
    async def story(world: World) -> None:
        broken = "function AggregateStatus(desiredObj, statusItems) return nil end"
        await interpret(world, statusAggregation=broken)
        await deliver(world)
        assert "AggregateStatusFailed" in await reasons(world)
        mended = a_customization("c", {"statusAggregation": COUNTING})
        await world.hub.apply(CUSTOMIZATIONS, mended)
        await world.eventually(
            lambda: world.hub.get(GADGETS, "web", NS),
            lambda found: object_at(found, "status").get("items") == 1,
        )

    play(story)


def test_a_judgement_of_health_that_fails_leaves_it_unknown() -> None:
    async def story(world: World) -> None:
        await interpret(world, healthInterpretation="function InterpretHealth(o) return 1 end")
        await deliver(world)
        (entry,) = objects_at(await work_of(world), "status", "manifestStatuses")
        assert string_at(entry, "health") == "Unknown"

    play(story)


def test_health_is_what_the_script_says() -> None:
    async def story(world: World) -> None:
        script = "function InterpretHealth(o) return o.spec.size > 1 end"
        await interpret(world, healthInterpretation=script)
        await deliver(world)
        (entry,) = objects_at(await work_of(world), "status", "manifestStatuses")
        assert string_at(entry, "health") == "Unhealthy"
        await world.hub.patch(GADGETS, "web", {"spec": {"size": 2}}, namespace=NS)
        await world.settle()
        (entry,) = objects_at(await work_of(world), "status", "manifestStatuses")
        assert string_at(entry, "health") == "Healthy"

    play(story)


# members ------------------------------------------------------------------------------------------


def test_a_copy_that_cannot_be_made_again_is_told_on_its_work_and_made_later() -> None:
    async def story(world: World) -> None:
        await deliver(world)
        strict = a_free_definition(GADGETS)
        version = objects_at(strict, "spec", "versions")[0]
        spec = object_at(version, "schema", "openAPIV3Schema", "properties", "spec")
        spec["required"] = ["color"]
        spec["properties"] = {"color": {"type": "string"}}
        dfw = world.planes["dfw-1"].connect()
        await apply_manifests(dfw, [strict])
        await world.settle()  # served a moment later, as on a real server
        await world.clients["dfw-1"].delete(GADGETS, "web", namespace=NS)
        await world.settle(10)
        applied = find_condition(await work_of(world), "Applied")
        assert string_at(applied, "status") == "False"
        assert string_at(applied, "reason") == "ReCreateFailed"
        assert await world.copy() is None
        spec.pop("required")
        await apply_manifests(dfw, [strict])
        await world.eventually(world.copy, has_size(1), timedelta(minutes=5))
        assert holds(await work_of(world), "Applied")

    play(story)


def test_a_member_without_its_secret_is_not_ready_until_it_is_there() -> None:
    async def story(world: World) -> None:
        secret = await world.hub.get(SECRETS, "dfw-1", CLUSTER_NAMESPACE)
        assert secret is not None
        await world.hub.delete(SECRETS, "dfw-1", namespace=CLUSTER_NAMESPACE)
        await world.eventually(is_ready(world), lambda ready: not ready)
        object_at(secret, "metadata").pop("resourceVersion")
        object_at(secret, "metadata").pop("uid")
        await world.hub.create(SECRETS, secret)
        await world.eventually(is_ready(world), bool)

    play(story)


def test_a_cluster_at_an_address_where_nobody_is_stays_away_and_can_leave() -> None:
    async def story(world: World) -> None:
        found = await world.hub.get(CLUSTERS, "ord-1")
        assert found is not None
        spec: JsonObject = {**object_at(found, "spec"), "apiEndpoint": "https://nowhere.internal"}
        lost: JsonObject = {
            "apiVersion": CLUSTERS.api_version,
            "kind": CLUSTERS.kind,
            "metadata": {"name": "lost", "labels": {CITY: "DFW"}},
            "spec": {**spec, "id": "lost"},
        }
        await world.hub.create(CLUSTERS, lost)
        await deliver(world)
        assert not await is_ready(world, "lost")()
        # Nothing is placed there, and what is elsewhere does not mind.
        works = await world.hub.list(WORKS)
        assert [one for one in works.items if string_at(one, "metadata", "name") == WORK] == [
            await work_of(world)
        ]
        await world.karmada.unjoin("lost")

    play(story)


# policies -----------------------------------------------------------------------------------------


def test_an_object_that_its_policy_no_longer_selects_is_set_free() -> None:
    async def story(world: World) -> None:
        await deliver(world)
        selector: JsonObject = {
            "apiVersion": GADGETS.api_version,
            "kind": GADGETS.kind,
            "namespace": NS,
            "name": "another",
        }
        patch: JsonObject = {"spec": {"resourceSelectors": [selector]}}
        await world.hub.patch(POLICIES, "city-dfw", patch, namespace=NS)
        await world.settle()
        template = await world.hub.get(GADGETS, "web", NS)
        assert find_claim(template or {}) is None
        assert labels_of(template or {}) == {CITY: "DFW"}
        # What is there stays, and nothing newer comes.
        await world.hub.patch(GADGETS, "web", {"spec": {"size": 2}}, namespace=NS)
        await world.settle()
        assert size_of(await world.copy() or {}) == 1

    play(story)


def test_an_object_whose_policy_is_gone_without_a_trace_is_set_free_too() -> None:
    async def story(world: World) -> None:
        await deliver(world)
        await world.karmada.stop()
        # Whoever takes the finalizer off by force leaves claims behind.
        patch: JsonObject = {"metadata": {"finalizers": None}}
        await world.hub.patch(POLICIES, "city-dfw", patch, namespace=NS)
        await world.hub.delete(POLICIES, "city-dfw", namespace=NS)
        world.karmada.start()
        await world.settle()
        # Karmada looks at an object only once somebody names its kind again.
        await world.hub.create(POLICIES, a_policy(NS, "other"))
        await world.settle()
        template = await world.hub.get(GADGETS, "web", NS)
        claim = find_claim(template or {})
        assert claim is not None
        assert claim.name == "other"

    play(story)


# things that come late ----------------------------------------------------------------------------


def test_karmada_waits_for_its_own_kinds() -> None:
    async def main(clock: VirtualClock) -> None:
        hub, dfw = (
            Plane(name, PlaneParts(clock=clock, identities=clock)) for name in ("hub", "dfw-1")
        )
        karmada = Karmada(hub.connect(), KarmadaParts(clock, clock))
        karmada.start()
        await asyncio.sleep(20)
        for plane, kinds in ((hub, load_crds("karmada")), (dfw, [])):
            await apply_manifests(plane.connect(), [*kinds, a_free_definition(GADGETS)])
        await asyncio.sleep(5)
        await karmada.join("dfw-1", dfw.connect(), {CITY: "DFW"})
        client = Client(hub.connect(), manager="test")
        await client.create(GADGETS, a_gadget("default"))
        await client.create(POLICIES, a_policy("default"))
        await asyncio.sleep(40)
        member = Client(dfw.connect(), manager="test")
        assert await member.get(GADGETS, "web", "default") is not None
        await karmada.stop()
        await hub.close()
        await dfw.close()

    run(main, seed=1, start=START)
