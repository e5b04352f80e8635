"""Our three kinds and those of external systems on the server: accepted, established, defaulted."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path

import orjson
import pytest

from compute_api_types.crd import derive_crds
from compute_api_types.testing import a_deployment, a_workload, an_instance
from compute_api_types.v1alpha.workload import Workload
from compute_sim_planes.api_server.kinds.crd_documents import is_established
from compute_sim_planes.api_server.testing import (
    Api,
    eventually,
    generation_of,
    metadata_of,
    version_of,
)
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EPOCH = "1970-01-01T00:00:00Z"


def ours() -> list[JsonObject]:
    return [orjson.loads(orjson.dumps(document)) for document in derive_crds()]


def names_of(documents: list[JsonObject]) -> list[str]:
    return [string_at(document, "metadata", "name") for document in documents]


async def install(api: Api, document: JsonObject) -> None:
    """Install a definition unless it exists: a real hub has the original ones."""
    name = string_at(document, "metadata", "name")
    (await api.post(CRDS, document)).expect(201, 409)
    await eventually(
        lambda: api.get(f"{CRDS}/{name}"), lambda response: is_established(response.body)
    )


@pytest.mark.parametrize("document", [*ours(), *load_crds()], ids=names_of([*ours(), *load_crds()]))
async def test_the_definition_is_accepted_and_established(api: Api, document: JsonObject) -> None:
    await install(api, document)
    existing = (await api.get(f"{CRDS}/{string_at(document, 'metadata', 'name')}")).expect(200)
    listed = objects_at(existing, "status", "conditions")
    conditions = {string_at(condition, "type"): condition["status"] for condition in listed}
    assert conditions["Established"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


def waiting(
    condition_type: str, reason: str = "Pending", message: str = "Waiting for controller"
) -> JsonObject:
    return {
        "type": condition_type,
        "status": "Unknown",
        "reason": reason,
        "message": message,
        "lastTransitionTime": EPOCH,
    }


COUNTERS: JsonObject = {
    "replicas": 0,
    "currentReplicas": 0,
    "updatedReplicas": 0,
    "desiredReplicas": 0,
    "readyReplicas": 0,
    "observedGeneration": 0,
}
DEFAULTS: dict[str, JsonObject] = {
    "instances": {
        "conditions": [
            waiting("Programmed"),
            waiting("Available"),
            waiting("Ready"),
            waiting("QuotaGranted", "PendingEvaluation", "Waiting for quota evaluation"),
        ]
    },
    "workloaddeployments": {
        "conditions": [waiting("Available"), waiting("ReplicasReady"), waiting("Ready")],
        **COUNTERS,
    },
    "workloads": {
        "conditions": [waiting("Available"), waiting("Ready")],
        "deployments": 0,
        **COUNTERS,
    },
}


def an_object(plural: str) -> JsonObject:
    workload = a_workload()
    deployment = a_deployment(workload)
    models = {
        "workloads": workload,
        "workloaddeployments": deployment,
        "instances": an_instance(deployment),
    }
    dumped: JsonObject = models[plural].model_dump(mode="json", by_alias=True, exclude_none=True)
    metadata = object_at(dumped, "metadata")
    kept: JsonObject = {name: metadata[name] for name in ("name", "labels") if name in metadata}
    return {**dumped, "metadata": kept}


@pytest.mark.parametrize("plural", sorted(DEFAULTS))
async def test_an_object_shows_the_default_status_until_one_is_written(
    api: Api, namespace: str, plural: str
) -> None:
    for document in ours():
        await install(api, document)
    path = f"/apis/compute.datumapis.com/v1alpha/namespaces/{namespace}/{plural}"
    await eventually(lambda: api.get(path), lambda response: response.status == 200)
    desired = an_object(plural)
    made = (await api.post(path, {**desired, "status": {"conditions": []}})).expect(201)
    assert made["status"] == DEFAULTS[plural]
    assert generation_of(made) == 1
    read = (await api.get(f"{path}/{metadata_of(made)['name']}")).expect(200)
    assert read == made
    reply = await api.merge(f"{path}/{metadata_of(made)['name']}/status", {"status": {"x": 1}})
    written = reply.expect(200)
    assert written["status"] == DEFAULTS[plural]
    assert int(version_of(written)) > int(version_of(made))


async def test_what_our_models_build_survives_a_round_trip(api: Api, namespace: str) -> None:
    for document in ours():
        await install(api, document)
    path = f"/apis/compute.datumapis.com/v1alpha/namespaces/{namespace}/workloads"
    await eventually(lambda: api.get(path), lambda response: response.status == 200)
    sent = an_object("workloads")
    made = await api.post(path, {**sent, "status": None}, fieldValidation="Strict")
    spec: JsonValue = made.expect(201)["spec"]
    assert spec == sent["spec"]
    parsed = Workload.read(made.body)
    assert parsed.metadata.name == metadata_of(made.body)["name"]


async def test_kubectl_finds_our_kinds_by_short_name_and_category(api: Api) -> None:
    for document in ours():
        await install(api, document)

    async def listed() -> dict[str, tuple[JsonValue, JsonValue]]:
        found = (await api.get("/apis/compute.datumapis.com/v1alpha")).expect(200)
        return {
            string_at(each, "name"): (each.get("shortNames"), each.get("categories"))
            for each in objects_at(found, "resources")
            if "/" not in string_at(each, "name")
        }

    assert await listed() == {
        "workloads": (["cwl"], ["compute"]),
        "workloaddeployments": (["cwd"], ["compute"]),
        "instances": (["cinst"], ["compute"]),
    }


async def test_the_status_of_a_gateway_is_kept_as_its_controller_writes_it(
    api: Api, namespace: str
) -> None:
    for document in ours():
        await install(api, document)
    path = f"/apis/compute.datumapis.com/v1alpha/namespaces/{namespace}/workloads"
    made = (await api.post(path, {**an_object("workloads"), "status": None})).expect(201)
    gateway: JsonObject = {
        "addresses": [{"type": "IPAddress", "value": "203.0.113.7"}],
        "listeners": [{"name": "tcp-443", "attachedRoutes": 1, "conditions": []}],
    }
    one = f"{path}/{metadata_of(made)['name']}"
    written = (await api.merge(f"{one}/status", {"status": {"gateway": gateway}})).expect(200)
    assert object_at(written, "status")["gateway"] == gateway
    assert Workload.read((await api.get(one)).expect(200)).status is not None


BEFORE = Path(__file__).parents[1] / "observed" / "compute-crds-before-names.json"


def in_group(document: JsonObject, group: str) -> JsonObject:
    """A definition of ours in a group of the test's own, which it may change on a shared server."""
    text = orjson.dumps(document).replace(b"compute.datumapis.com", group.encode())
    changed: JsonObject = orjson.loads(text)
    object_at(changed, "metadata").pop("annotations", None)
    names = object_at(changed, "spec", "names")
    # A short name that another definition has is not accepted.
    if "shortNames" in names:
        names["shortNames"] = [f"{group[:6]}{string_at(names, 'singular')[-1]}"]
    return changed


async def test_objects_stored_under_the_former_definitions_stay_readable_and_writable(
    api: Api, namespace: str
) -> None:
    """With duplicates in every list that conventions would have as a set or a map, and with what
    the rules of a Workload refuse since.
    """
    group = f"g{secrets.token_hex(4)}.example.com"
    before, after = (
        {string_at(each, "spec", "names", "plural"): in_group(each, group) for each in documents}
        for documents in (orjson.loads(BEFORE.read_bytes()), ours())
    )
    for document in before.values():
        await install(api, document)
    stored: dict[str, JsonObject] = {}
    for plural in before:
        path = f"/apis/{group}/v1alpha/namespaces/{namespace}/{plural}"
        await eventually(partial(api.get, path), lambda response: response.status == 200)
        stored[path] = await store_with_duplicates(api, path, group, plural)
    for document in after.values():
        definition = f"{CRDS}/{string_at(document, 'metadata', 'name')}"
        (await api.merge(definition, {"spec": document["spec"]})).expect(200)
        await eventually(
            partial(api.get, definition),
            lambda response: "shortNames" in object_at(response.body, "status", "acceptedNames"),
        )
    for path, found in stored.items():
        if path.endswith("/workloads"):
            await expect_rules(api, path, found)
        await expect_writable(api, path, found)
    for document in after.values():
        await api.delete(f"{CRDS}/{string_at(document, 'metadata', 'name')}")


async def store_with_duplicates(api: Api, path: str, group: str, plural: str) -> JsonObject:
    text = orjson.dumps(an_object(plural)).replace(b"compute.datumapis.com", group.encode())
    document: JsonObject = orjson.loads(text)
    object_at(document, "metadata")["finalizers"] = ["example.com/held"]
    if plural == "workloads":
        spec = object_at(document, "spec")
        placement = objects_at(spec, "placements")[0]
        twice: JsonObject = {**placement, "cityCodes": ["DFW", "DFW", "dfw"]}
        # Rules refuse a new one with no replicas, a gate or such a label.
        twice = {**twice, "scaleSettings": {"minReplicas": 0, "maxReplicas": 2000}}
        spec["placements"] = [twice, twice]
        template = object_at(spec, "template")
        template["metadata"] = {"labels": {"compute.datumapis.com/workload-uid": "forged"}}
        object_at(template, "spec")["controller"] = {"templateHash": "v1-0"}
    made = (await api.post(path, {**document, "status": None})).expect(201)
    one = f"{path}/{metadata_of(made)['name']}"
    conditions: list[JsonValue] = [waiting("Ready"), waiting("Ready"), waiting("Foreign")]
    status: JsonObject = {"status": {"conditions": conditions}}
    return (await api.merge(f"{one}/status", status)).expect(200)


async def expect_rules(api: Api, path: str, found: JsonObject) -> None:
    """They are in force: for new objects, and for what an update changes."""
    metadata: JsonObject = {"name": "new"}
    fresh: JsonObject = {**found, "metadata": metadata}
    await eventually(
        lambda: api.post(path, fresh, dryRun="All"),
        lambda response: "set by the platform" in response.message,
    )
    one = f"{path}/{metadata_of(found)['name']}"
    changed: JsonObject = {"spec": {"template": {"spec": {"controller": {"templateHash": "x"}}}}}
    refused = await api.merge(one, changed)
    assert (refused.status, "spec.template.spec.controller" in refused.message) == (422, True)
    labelled = await api.merge(one, {"metadata": {"labels": {"a": "a"}}})
    labelled.expect(200)
    assert any("set by the platform" in warning for warning in labelled.warnings)


async def expect_writable(api: Api, path: str, found: JsonObject) -> None:
    one = f"{path}/{metadata_of(found)['name']}"
    read = (await api.get(one)).expect(200)
    assert (read["spec"], read["status"]) == (found["spec"], found["status"])
    labelled = (await api.merge(one, {"metadata": {"labels": {"a": "b"}}})).expect(200)
    assert labelled["spec"] == found["spec"]
    more: list[JsonValue] = [*objects_at(found, "status", "conditions"), waiting("Foreign")]
    written = (await api.merge(f"{one}/status", {"status": {"conditions": more}})).expect(200)
    assert object_at(written, "status")["conditions"] == more
    (await api.delete(one)).expect(200, 202)
    (await api.merge(one, {"metadata": {"finalizers": None}})).expect(200)
    await eventually(lambda: api.get(one), lambda response: response.status == 404)
