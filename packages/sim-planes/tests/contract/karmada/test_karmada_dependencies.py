"""`docs/spec/neighbours.md` 1.10: what a propagated object depends on is delivered with it."""

from __future__ import annotations

import json
from functools import partial
from typing import Final

from karmada_builders.fixture import WEB, StackFixture

from compute_sim_planes.client.rest import Resource
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at
from compute_sim_planes.karmada.kinds import BINDINGS, DEPENDENCIES, POLICIES

CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
NEEDS: Final = "karmada-contract.example.com/needs"
# Each name in the annotation is a ConfigMap in the namespace of the object.
NAMES: Final = f"""
function GetDependencies(desiredObj)
  local found = {{}}
  local annotations = desiredObj.metadata.annotations
  if annotations == nil or annotations["{NEEDS}"] == nil then
    return found
  end
  for name in string.gmatch(annotations["{NEEDS}"], "[^,]+") do
    found[#found + 1] = {{
      apiVersion = "v1", kind = "ConfigMap", namespace = desiredObj.metadata.namespace, name = name,
    }}
  end
  return found
end
"""


def a_config_map(karmada: StackFixture, name: str = "settings", value: str = "1") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": karmada.namespace, "name": name},
        "data": {"value": value},
    }


def needing(gadget: JsonObject, *names: str) -> JsonObject:
    metadata = gadget["metadata"]
    assert isinstance(metadata, dict)
    return {**gadget, "metadata": {**metadata, "annotations": {NEEDS: ",".join(names)}}}


async def copy_of(
    karmada: StackFixture, member: str = "dfw-1", name: str = "settings"
) -> JsonObject | None:
    return await karmada.members[member].get(CONFIG_MAPS, name, karmada.namespace)


async def attached(karmada: StackFixture, name: str = "settings") -> JsonObject | None:
    return await karmada.hub.get(BINDINGS, f"{name}-configmap", karmada.namespace)


async def deliver(karmada: StackFixture, *, propagates: JsonValue = True) -> None:
    await karmada.interpret(dependencyInterpretation=NAMES)
    await karmada.place("dfw-1")
    await karmada.hub.create(CONFIG_MAPS, a_config_map(karmada))
    policy = karmada.policy(propagateDeps=propagates)
    await karmada.make(policy, needing(karmada.gadget(), "settings"))
    await karmada.arrives(lambda: karmada.copy("dfw-1"))


async def test_a_dependency_is_delivered_to_the_clusters_of_what_needs_it(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    copy = await karmada.arrives(partial(copy_of, karmada))
    assert copy["data"] == {"value": "1"}
    assert await copy_of(karmada, "ord-1") is None
    binding = await karmada.arrives(partial(attached, karmada))
    (snapshot,) = objects_at(binding, "spec", "requiredBy")
    assert string_at(snapshot, "name") == f"{WEB}-gadget"
    assert [string_at(one, "name") for one in objects_at(snapshot, "clusters")] == ["dfw-1"]
    assert "placement" not in object_at(binding, "spec")


async def test_the_dependencies_are_recorded_on_the_independent_binding(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await karmada.arrives(partial(copy_of, karmada))
    binding = await karmada.binding()
    assert binding is not None
    (recorded,) = json.loads(string_at(binding, "metadata", "annotations", DEPENDENCIES))
    assert (recorded["kind"], recorded["name"]) == ("ConfigMap", "settings")


async def test_without_propagate_deps_nothing_is_attached(karmada: StackFixture) -> None:
    await deliver(karmada, propagates=False)
    await karmada.stays(partial(attached, karmada), lambda one: one is None)


async def test_a_changed_dependency_follows(karmada: StackFixture) -> None:
    await deliver(karmada)
    await karmada.arrives(partial(copy_of, karmada))
    patch: JsonObject = {"data": {"value": "2"}}
    await karmada.hub.patch(CONFIG_MAPS, "settings", patch, namespace=karmada.namespace)
    await karmada.arrives(
        partial(copy_of, karmada), lambda one: string_at(one, "data", "value") == "2"
    )


async def test_a_dependency_that_appears_later_is_delivered(karmada: StackFixture) -> None:
    await deliver(karmada)
    await karmada.arrives(partial(copy_of, karmada))
    await karmada.edit({"metadata": {"annotations": {NEEDS: "settings,late"}}})
    await karmada.take_in()
    await karmada.hub.create(CONFIG_MAPS, a_config_map(karmada, "late"))
    await karmada.arrives(partial(copy_of, karmada, name="late"))


async def test_a_dependency_that_is_named_no_more_leaves_the_clusters(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await karmada.arrives(partial(copy_of, karmada))
    await karmada.edit({"metadata": {"annotations": {NEEDS: ""}}})
    await karmada.gone(partial(copy_of, karmada))
    assert await karmada.hub.get(CONFIG_MAPS, "settings", karmada.namespace) is not None


async def test_a_deleted_dependency_leaves_the_clusters_with_its_binding(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await karmada.arrives(partial(copy_of, karmada))
    await karmada.hub.delete(CONFIG_MAPS, "settings", namespace=karmada.namespace)
    await karmada.gone(partial(copy_of, karmada))
    await karmada.gone(partial(attached, karmada))
    assert await karmada.copy("dfw-1") is not None


async def test_dependencies_go_when_propagate_deps_is_taken_back(karmada: StackFixture) -> None:
    await deliver(karmada)
    await karmada.arrives(partial(copy_of, karmada))
    patch: JsonObject = {"spec": {"propagateDeps": None}}
    await karmada.hub.patch(POLICIES, "policy", patch, namespace=karmada.namespace)
    await karmada.gone(partial(copy_of, karmada))


async def test_two_objects_share_one_binding_of_a_dependency(karmada: StackFixture) -> None:
    await deliver(karmada)
    await karmada.arrives(partial(copy_of, karmada))
    await karmada.make(needing(karmada.gadget("other"), "settings"))
    await karmada.arrives(
        partial(attached, karmada), lambda one: len(objects_at(one, "spec", "requiredBy")) == 2
    )
    await karmada.hub.delete(BINDINGS, "other-gadget", namespace=karmada.namespace)
    await karmada.arrives(
        partial(attached, karmada), lambda one: len(objects_at(one, "spec", "requiredBy")) >= 1
    )
    assert await copy_of(karmada) is not None


async def test_a_dependency_script_that_fails_delivers_the_object_alone(
    karmada: StackFixture,
) -> None:
    await karmada.interpret(dependencyInterpretation="function GetDependencies(o) error('no') end")
    await karmada.place("dfw-1")
    await karmada.hub.create(CONFIG_MAPS, a_config_map(karmada))
    await karmada.make(karmada.policy(propagateDeps=True), needing(karmada.gadget(), "settings"))
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    await karmada.stays(partial(copy_of, karmada), lambda one: one is None)
