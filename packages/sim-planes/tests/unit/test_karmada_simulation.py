"""The simulated Karmada in virtual time: behaviour beyond the contract tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest
from karmada_builders.documents import (
    CITY,
    GADGETS,
    a_customization,
    a_free_definition,
    a_gadget,
    a_namespace,
    a_policy,
)
from karmada_builders.fixture import COUNTING, annotation_of, is_refused, size_of
from karmada_builders.virtual import (
    NS,
    START,
    World,
    deliver,
    has_size,
    interpret,
    is_ready,
    open_world,
    run_scenario,
)

from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.client.rest import Resource
from compute_sim_planes.faults.links import LinkState
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at
from compute_sim_planes.karmada.kinds import (
    BINDINGS,
    CLUSTER_POLICIES,
    CLUSTERS,
    CUSTOMIZATIONS,
    NAMESPACES,
    POLICIES,
    SKIP_PROPAGATION,
    TEMPLATE_GENERATION,
    WORKS,
)
from compute_sim_planes.karmada.metadata import finalizers_of, labels_of, version_of
from compute_sim_planes.karmada.names import derive_work_name
from compute_sim_planes.karmada.options import real_plane_options
from compute_sim_planes.time.clock import VirtualClock, run

# unreachable members ------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [LinkState.REFUSED, LinkState.SILENT])
def test_a_member_that_is_cut_off_gets_what_it_missed_once_it_is_back(state: LinkState) -> None:
    async def scenario(world: World) -> None:
        await deliver(world)
        world.karmada.cut("dfw-1", state)
        await world.eventually(is_ready(world), lambda ready: not ready, timedelta(minutes=3))
        await world.hub.patch(GADGETS, "web", {"spec": {"size": 2}}, namespace=NS)
        await world.settle(30)
        assert size_of(await world.copy() or {}) == 1
        world.karmada.heal("dfw-1")
        await world.eventually(is_ready(world), bool)
        await world.eventually(world.copy, has_size(2))

    run_scenario(scenario, options=real_plane_options())


def test_status_that_a_member_wrote_while_it_was_cut_off_comes_up_once_it_is_back() -> None:
    async def scenario(world: World) -> None:
        await interpret(world, statusAggregation=COUNTING)
        await deliver(world)
        world.karmada.cut("dfw-1")
        patch: JsonObject = {"status": {"phase": "Alone"}}
        await world.clients["dfw-1"].patch(
            GADGETS, "web", patch, namespace=NS, subresource="status"
        )
        await world.settle(60)
        existing = await world.hub.get(GADGETS, "web", NS)
        assert "phase" not in object_at(existing, "status")
        world.karmada.heal("dfw-1")
        await world.eventually(
            lambda: world.hub.get(GADGETS, "web", NS),
            lambda existing: string_at(existing, "status", "phase") == "Alone",
        )

    run_scenario(scenario)


def test_by_default_a_member_is_called_away_after_its_threshold_and_back_after_another() -> None:
    async def scenario(world: World) -> None:
        options = world.karmada.options
        world.karmada.cut("dfw-1")
        took = await world.eventually(is_ready(world), lambda ready: not ready)
        assert (
            options.failure_threshold
            <= took
            <= options.failure_threshold + 2 * options.health_interval
        )
        world.karmada.heal("dfw-1")
        took = await world.eventually(is_ready(world), bool)
        assert (
            options.success_threshold
            <= took
            <= options.success_threshold + 2 * options.health_interval
        )

    run_scenario(scenario)


# processes ----------------------------------------------------------------------------------------


def test_what_happened_while_karmada_was_down_is_done_when_it_is_up() -> None:
    async def scenario(world: World) -> None:
        await deliver(world)
        await world.karmada.stop()
        await world.hub.patch(GADGETS, "web", {"spec": {"size": 2}}, namespace=NS)
        await world.hub.create(GADGETS, a_gadget(NS, "late"))
        await world.settle(60)
        assert await world.copy(name="late") is None
        world.karmada.start()
        await world.eventually(world.copy, has_size(2))
        await world.eventually(lambda: world.copy(name="late"), has_size(1))

    run_scenario(scenario)


def test_a_settled_world_is_left_alone_also_by_a_new_process() -> None:
    async def scenario(world: World) -> None:
        await interpret(world, statusAggregation=COUNTING)
        await deliver(world)
        before = world.versions()
        await world.settle(600)
        assert world.versions() == before
        sent = [await world.hub.list(kind) for kind in (WORKS, GADGETS, CLUSTERS)]
        await world.karmada.stop()
        world.karmada.options.writes_events = False  # successes would be recorded again
        world.karmada.start()
        await world.settle(60)
        # Bindings record the version of their object and the time; nothing else depends on it.
        again = [await world.hub.list(kind) for kind in (WORKS, GADGETS, CLUSTERS)]
        assert [listing.items for listing in again] == [listing.items for listing in sent]
        after = world.versions()
        assert (after["dfw-1"], after["ord-1"]) == (before["dfw-1"], before["ord-1"])
        await world.settle(600)
        assert world.versions() == after

    run_scenario(scenario)


def test_the_same_seed_gives_the_same_run() -> None:
    def outcome(seed: int) -> list[JsonObject]:
        async def main(clock: VirtualClock) -> list[JsonObject]:
            async with open_world(clock) as world:
                await deliver(world)
                works = await world.hub.list(WORKS)
                return [*works.items, *(await world.hub.list(BINDINGS)).items]

        return run(main, seed=seed, start=START)

    assert outcome(7) == outcome(7)
    assert outcome(7) != outcome(8)


# kinds --------------------------------------------------------------------------------------------

LATE: Final = Resource("late.example.com", "v1", "latecomers", "Latecomer")


def test_a_kind_that_comes_later_is_propagated_within_half_a_minute() -> None:
    async def scenario(world: World) -> None:
        for plane in world.planes.values():
            await apply_manifests(plane.connect(), [a_free_definition(LATE)])
        selector: JsonObject = {"apiVersion": LATE.api_version, "kind": LATE.kind}
        await world.hub.create(POLICIES, a_policy(NS, spec={"resourceSelectors": [selector]}))
        metadata: JsonObject = {"namespace": NS, "name": "web"}
        await world.hub.create(LATE, {**selector, "metadata": metadata, "spec": {}})
        took = await world.eventually(
            lambda: world.clients["dfw-1"].get(LATE, "web", NS),
            lambda existing: existing is not None,
        )
        assert timedelta(seconds=1) < took <= timedelta(seconds=41)

    run_scenario(scenario)


# policies -----------------------------------------------------------------------------------------


def test_a_cluster_policy_takes_what_no_policy_near_takes() -> None:
    async def scenario(world: World) -> None:
        wide = {**a_policy("", "wide"), "kind": CLUSTER_POLICIES.kind}
        object_at(wide, "spec")["placement"] = {"clusterAffinity": {"clusterNames": ["ord-1"]}}
        object_at(wide, "metadata").pop("namespace")
        await world.hub.create(CLUSTER_POLICIES, wide)
        await world.hub.create(GADGETS, a_gadget(NS))
        await world.eventually(lambda: world.copy("ord-1"), has_size(1))
        # The claim stays, although another policy would win a first match.
        await world.hub.create(POLICIES, a_policy(NS))
        await world.settle()
        assert await world.copy("dfw-1") is None
        await world.hub.create(GADGETS, a_gadget(NS, "second"))
        await world.eventually(lambda: world.copy("dfw-1", "second"), has_size(1))

    run_scenario(scenario)


def test_a_hub_without_admission_completes_policies_a_moment_later() -> None:
    async def scenario(world: World) -> None:
        await deliver(world)
        policy = await world.hub.get(POLICIES, "city-dfw", NS)
        assert policy is not None
        assert labels_of(policy)
        assert finalizers_of(policy)

    run_scenario(scenario, has_admission=False)


def test_a_policy_applied_again_is_the_same_policy() -> None:
    async def scenario(world: World) -> None:
        first = await world.hub.apply(POLICIES, a_policy(NS))
        again = await world.hub.apply(POLICIES, a_policy(NS))
        assert version_of(again) == version_of(first)
        selectors = objects_at(again, "spec", "resourceSelectors")
        assert [string_at(one, "namespace") for one in selectors] == [NS]

    run_scenario(scenario)


def test_a_suspended_policy_sends_nothing_until_it_goes_on() -> None:
    async def scenario(world: World) -> None:
        suspended: JsonObject = {"suspension": {"dispatching": True}}
        await world.hub.create(POLICIES, a_policy(NS, spec=suspended))
        await world.hub.create(GADGETS, a_gadget(NS))
        await world.settle()
        assert await world.copy() is None
        await world.hub.patch(POLICIES, "city-dfw", {"spec": {"suspension": None}}, namespace=NS)
        await world.eventually(world.copy, has_size(1))

    run_scenario(scenario)


def test_a_policy_may_keep_copies_when_their_object_goes() -> None:
    async def scenario(world: World) -> None:
        kept: JsonObject = {"preserveResourcesOnDeletion": True}
        await world.hub.create(POLICIES, a_policy(NS, spec=kept))
        await world.hub.create(GADGETS, a_gadget(NS))
        await world.settle()
        await world.hub.delete(GADGETS, "web", namespace=NS)
        await world.settle(10)
        assert (await world.hub.list(BINDINGS)).items == []
        assert await world.copy() is not None

    run_scenario(scenario)


def test_a_namespace_that_opts_out_stays_on_the_hub() -> None:
    async def scenario(world: World) -> None:
        await world.hub.create(NAMESPACES, a_namespace("own", {SKIP_PROPAGATION: "true"}))
        await world.settle()
        assert await world.clients["dfw-1"].get(NAMESPACES, "own") is None

    run_scenario(scenario)


# changes in members -------------------------------------------------------------------------------


def strict(maximum: int) -> JsonObject:
    """A schema for Gadgets of at most this size."""
    definition = a_free_definition(GADGETS)
    version = objects_at(definition, "spec", "versions")[0]
    object_at(version, "schema", "openAPIV3Schema", "properties", "spec")["properties"] = {
        "size": {"type": "integer", "maximum": maximum}
    }
    return definition


@pytest.mark.fault("C7")
def test_an_object_that_a_member_rejects_is_reported_on_its_work_and_heals() -> None:
    async def scenario(world: World) -> None:
        await deliver(world)
        dfw = world.planes["dfw-1"].connect()
        await apply_manifests(dfw, [strict(maximum=5)])
        await world.hub.patch(GADGETS, "web", {"spec": {"size": 7}}, namespace=NS)
        await world.settle()
        name = derive_work_name("Gadget", NS, "web")
        work = await world.hub.get(WORKS, name, "karmada-es-dfw-1")
        assert work is not None
        assert is_refused(work)
        binding = await world.hub.get(BINDINGS, "web-gadget", NS)
        (item,) = objects_at(binding, "status", "aggregatedStatus")
        assert "applied" not in item
        assert "should be less than or equal to 5" in string_at(item, "appliedMessage")
        await apply_manifests(dfw, [strict(maximum=9)])
        await world.eventually(world.copy, has_size(7), timedelta(minutes=5))

    run_scenario(scenario)


def test_a_member_that_defaults_fields_is_not_fought() -> None:
    async def scenario(world: World) -> None:
        definition = strict(maximum=9)
        version = objects_at(definition, "spec", "versions")[0]
        properties = object_at(
            version, "schema", "openAPIV3Schema", "properties", "spec", "properties"
        )
        properties["color"] = {"type": "string", "default": "red"}
        await apply_manifests(world.planes["dfw-1"].connect(), [definition])
        await deliver(world)
        before = world.versions()
        await world.settle(60)
        assert world.versions() == before
        existing = await world.copy()
        assert string_at(existing, "spec", "color") == "red"

    run_scenario(scenario)


def test_a_retention_script_leaves_a_field_to_the_member() -> None:
    async def scenario(world: World) -> None:
        script = """
function Retain(desiredObj, observedObj)
  desiredObj.spec.own = observedObj.spec.own
  return desiredObj
end
"""
        await interpret(world, retention=script)
        await deliver(world)
        patch: JsonObject = {"spec": {"own": "theirs"}}
        await world.clients["dfw-1"].patch(GADGETS, "web", patch, namespace=NS)
        await world.settle()
        await world.hub.patch(GADGETS, "web", {"spec": {"size": 2}}, namespace=NS)
        await world.eventually(world.copy, has_size(2))
        existing = await world.copy()
        assert string_at(existing, "spec", "own") == "theirs"
        assert annotation_of(existing or {}, TEMPLATE_GENERATION) == "2"

    run_scenario(scenario)


def test_a_changed_script_speaks_at_the_next_aggregation_and_not_before() -> None:
    async def scenario(world: World) -> None:
        await interpret(world, statusAggregation=COUNTING)
        await deliver(world)
        changed = COUNTING.replace("items = -1", 'items = -1, said = "changed"')
        desired = a_customization("c", {"statusAggregation": changed})
        await world.hub.apply(CUSTOMIZATIONS, desired)
        await world.settle(30)

        async def status() -> JsonObject:
            return object_at(await world.hub.get(GADGETS, "web", NS), "status")

        assert "said" not in await status()
        patch: JsonObject = {"status": {"phase": "Told"}}
        await world.clients["dfw-1"].patch(
            GADGETS, "web", patch, namespace=NS, subresource="status"
        )
        await world.eventually(status, lambda status: status.get("said") == "changed")

    run_scenario(scenario)


def test_un_joining_takes_copies_and_namespaces_of_one_member_and_no_other() -> None:
    async def scenario(world: World) -> None:
        await world.hub.create(POLICIES, a_policy(NS, spec={"placement": {}}))
        await world.hub.create(GADGETS, a_gadget(NS))
        await world.settle()
        await world.karmada.unjoin("dfw-1")
        await world.settle()
        assert await world.copy("dfw-1") is None
        assert await world.clients["dfw-1"].get(NAMESPACES, NS) is None
        assert await world.copy("ord-1") is not None
        await world.karmada.join("dfw-1", world.planes["dfw-1"].connect(), {CITY: "DFW"})
        await world.eventually(lambda: world.copy("dfw-1"), has_size(1))

    run_scenario(scenario)
