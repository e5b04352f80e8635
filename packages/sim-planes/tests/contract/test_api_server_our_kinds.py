"""Our three kinds and those of external systems on the server: accepted, established, defaulted."""

from __future__ import annotations

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
