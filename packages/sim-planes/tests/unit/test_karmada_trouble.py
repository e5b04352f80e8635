"""The simulated Karmada with errors: failing scripts, members that refuse, late objects."""

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
from karmada_builders.fixture import COUNTING, size_of
from karmada_builders.virtual import (
    NS,
    START,
    World,
    deliver,
    has_size,
    interpret,
    is_ready,
    run_scenario,
)

from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import find_condition, is_condition_true
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
from compute_sim_planes.time.clock import VirtualClock, run

WORK = derive_work_name("Gadget", NS, "web")


async def work_of(world: World) -> JsonObject:
    existing = await world.hub.get(WORKS, WORK, "karmada-es-dfw-1")
    assert existing is not None
    return existing


async def reasons(world: World) -> set[str]:
    return {string_at(event, "reason") for event in (await world.hub.list(EVENTS)).items}


# scripts ------------------------------------------------------------------------------------------


def test_a_failed_aggregation_is_reported_and_heals_with_its_script() -> None:
    async def scenario(world: World) -> None:
        broken = "function AggregateStatus(desiredObj, statusItems) return nil end"
        await interpret(world, statusAggregation=broken)
        await deliver(world)
        assert "AggregateStatusFailed" in await reasons(world)
        mended = a_customization("c", {"statusAggregation": COUNTING})
        await world.hub.apply(CUSTOMIZATIONS, mended)
        await world.eventually(
            lambda: world.hub.get(GADGETS, "web", NS),
            lambda existing: object_at(existing, "status").get("items") == 1,
        )

    run_scenario(scenario)


def test_a_judgement_of_health_that_fails_leaves_it_unknown() -> None:
    async def scenario(world: World) -> None:
        await interpret(world, healthInterpretation="function InterpretHealth(o) return 1 end")
        await deliver(world)
        (entry,) = objects_at(await work_of(world), "status", "manifestStatuses")
        assert string_at(entry, "health") == "Unknown"

    run_scenario(scenario)


def test_health_is_what_the_script_says() -> None:
    async def scenario(world: World) -> None:
        script = "function InterpretHealth(o) return o.spec.size > 1 end"
        await interpret(world, healthInterpretation=script)
        await deliver(world)
        (entry,) = objects_at(await work_of(world), "status", "manifestStatuses")
        assert string_at(entry, "health") == "Unhealthy"
        await world.hub.patch(GADGETS, "web", {"spec": {"size": 2}}, namespace=NS)
        await world.settle()
        (entry,) = objects_at(await work_of(world), "status", "manifestStatuses")
        assert string_at(entry, "health") == "Healthy"

    run_scenario(scenario)


# members ------------------------------------------------------------------------------------------


def test_a_copy_that_cannot_be_recreated_is_reported_on_its_work_and_created_later() -> None:
    async def scenario(world: World) -> None:
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
        assert is_condition_true(await work_of(world), "Applied")

    run_scenario(scenario)


def test_a_member_without_its_secret_is_not_ready_until_it_is_there() -> None:
    async def scenario(world: World) -> None:
        secret = await world.hub.get(SECRETS, "dfw-1", CLUSTER_NAMESPACE)
        assert secret is not None
        await world.hub.delete(SECRETS, "dfw-1", namespace=CLUSTER_NAMESPACE)
        await world.eventually(is_ready(world), lambda ready: not ready)
        object_at(secret, "metadata").pop("resourceVersion")
        object_at(secret, "metadata").pop("uid")
        await world.hub.create(SECRETS, secret)
        await world.eventually(is_ready(world), bool)

    run_scenario(scenario)


def test_a_cluster_at_a_dead_address_stays_not_ready_and_can_leave() -> None:
    async def scenario(world: World) -> None:
        existing = await world.hub.get(CLUSTERS, "ord-1")
        assert existing is not None
        spec: JsonObject = {
            **object_at(existing, "spec"),
            "apiEndpoint": "https://nowhere.internal",
        }
        lost: JsonObject = {
            "apiVersion": CLUSTERS.api_version,
            "kind": CLUSTERS.kind,
            "metadata": {"name": "lost", "labels": {CITY: "DFW"}},
            "spec": {**spec, "id": "lost"},
        }
        await world.hub.create(CLUSTERS, lost)
        await deliver(world)
        assert not await is_ready(world, "lost")()
        # Nothing is placed there, and other members are not affected.
        works = await world.hub.list(WORKS)
        assert [one for one in works.items if string_at(one, "metadata", "name") == WORK] == [
            await work_of(world)
        ]
        await world.karmada.unjoin("lost")

    run_scenario(scenario)


# policies -----------------------------------------------------------------------------------------


def test_an_object_that_its_policy_no_longer_selects_is_set_free() -> None:
    async def scenario(world: World) -> None:
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
        # The existing copy stays, and no newer version is sent.
        await world.hub.patch(GADGETS, "web", {"spec": {"size": 2}}, namespace=NS)
        await world.settle()
        assert size_of(await world.copy() or {}) == 1

    run_scenario(scenario)


def test_an_object_of_a_vanished_policy_is_released_too() -> None:
    async def scenario(world: World) -> None:
        await deliver(world)
        await world.karmada.stop()
        # Removing the finalizer manually leaves claims behind.
        patch: JsonObject = {"metadata": {"finalizers": None}}
        await world.hub.patch(POLICIES, "city-dfw", patch, namespace=NS)
        await world.hub.delete(POLICIES, "city-dfw", namespace=NS)
        world.karmada.start()
        await world.settle()
        # Karmada reconciles an object only once a policy selects its kind again.
        await world.hub.create(POLICIES, a_policy(NS, "other"))
        await world.settle()
        template = await world.hub.get(GADGETS, "web", NS)
        claim = find_claim(template or {})
        assert claim is not None
        assert claim.name == "other"

    run_scenario(scenario)


# late objects -------------------------------------------------------------------------------------


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
