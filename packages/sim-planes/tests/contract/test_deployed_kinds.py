"""`deploy/crds` on a server: no warnings, structural schemas, columns, defaults, pruning.

Also the admission cases that the schema decides (`docs/spec/api.md`).
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Final

import orjson
import pytest
import pytest_asyncio

from compute_api_types.testing import a_deployment, a_workload, an_instance
from compute_api_types.validation import NETWORKING_OFF, Facts, review_workload
from compute_sim_planes.api_server.kinds.crd_documents import is_established
from compute_sim_planes.api_server.manifests import read_manifests
from compute_sim_planes.api_server.patch.json_patch import json_patch
from compute_sim_planes.api_server.testing import Api, ApiResponse, eventually
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    objects_at,
    string_at,
)

TREE: Final = Path(__file__).parents[4]
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SHIPPED: Final = read_manifests(TREE / "deploy" / "crds")
PLURALS: Final = {
    "Workload": "workloads",
    "WorkloadDeployment": "workloaddeployments",
    "Instance": "instances",
}
CONTAINER: Final = "/spec/template/spec/runtime/sandbox/containers/0"
RUNTIME: Final = "/spec/template/spec/runtime"
TEMPLATE: Final = "/spec/template/spec"


def name_of(document: JsonObject) -> str:
    return string_at(document, "metadata", "name")


async def install(api: Api, document: JsonObject) -> ApiResponse:
    """Apply a CRD; returns once the kind is served."""
    path = f"{CRDS}/{name_of(document)}"
    reply = await api.apply(path, document, "deploy", force="true")
    reply.expect(200, 201)
    await eventually(lambda: api.get(path), lambda response: is_established(response.body))
    return reply


@pytest_asyncio.fixture
async def compute(api: Api, namespace: str) -> str:
    """The path of our group in the test's own namespace."""
    for document in SHIPPED:
        await install(api, document)
    path = f"/apis/compute.datumapis.com/v1alpha/namespaces/{namespace}"
    for plural in PLURALS.values():
        served = partial(api.get, f"{path}/{plural}")
        await eventually(served, lambda response: response.status == 200)
    return path


def an_object(kind: str) -> JsonObject:
    """A valid object, as a user would write it."""
    workload = a_workload()
    deployment = a_deployment(workload)
    models = {
        "Workload": workload,
        "WorkloadDeployment": deployment,
        "Instance": an_instance(deployment),
    }
    dumped: JsonObject = orjson.loads(
        orjson.dumps(models[kind].model_dump(mode="json", by_alias=True, exclude_none=True))
    )
    dumped.pop("status", None)
    return {**dumped, "metadata": {"name": "one"}}


def changed(kind: str, *operations: JsonObject) -> JsonObject:
    return json_patch(an_object(kind), list[JsonValue](operations))


def put(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


def take(path: str) -> JsonObject:
    return {"op": "remove", "path": path}


@pytest.mark.parametrize("document", SHIPPED, ids=[name_of(one) for one in SHIPPED])
async def test_a_definition_that_ships_is_taken_without_a_warning_and_is_structural(
    api: Api, document: JsonObject
) -> None:
    reply = await install(api, document)
    assert reply.warnings == ()
    existing = (await api.get(f"{CRDS}/{name_of(document)}")).expect(200)
    conditions = {
        string_at(one, "type"): string_at(one, "status")
        for one in objects_at(existing, "status", "conditions")
    }
    assert conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


def columns_of(kind: str) -> list[tuple[str, int]]:
    """Names and priorities from the specification, in its order."""
    page = (TREE / "docs" / "spec" / "api.md").read_text("utf-8")
    table = page.partition("## 6. Printer columns")[2].partition("\n## ")[0]
    (row,) = (line for line in table.splitlines() if line.startswith(f"| {kind} |"))
    cells = row.split("|", 2)[2].split(" · ")
    columns: list[tuple[str, int]] = []
    for cell in cells:
        name = re.search(r"`([^`]+)`", cell)
        assert name
        columns.append((name[1], 1 if "priority 1" in cell else 0))
    return columns


@pytest.mark.parametrize("kind", sorted(PLURALS))
async def test_the_columns_of_a_table_are_those_of_the_page(
    api: Api, compute: str, kind: str
) -> None:
    tables = api.with_headers(Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    table = (await tables.get(f"{compute}/{PLURALS[kind]}")).expect(200)
    named, *columns = objects_at(table, "columnDefinitions")
    assert string_at(named, "name") == "Name"
    shown = [(string_at(one, "name"), integer_at(one, "priority") or 0) for one in columns]
    assert shown == columns_of(kind)


async def test_cells_of_a_fresh_object_are_filled_from_its_defaults(api: Api, compute: str) -> None:
    (await api.post(f"{compute}/workloads", an_object("Workload"))).expect(201)
    tables = api.with_headers(Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    table = (await tables.get(f"{compute}/workloads")).expect(200)
    (row,) = objects_at(table, "rows")
    cells = row["cells"]
    assert isinstance(cells, list)
    # Name, Age, Available, Reason, Deployments, Replicas, Ready, Desired, Up-to-date, Message; a
    # column that is declared a string shows numbers as text.
    assert [cells[0], *cells[2:]] == [
        "one",
        "Unknown",
        "Pending",
        *["0"] * 5,
        "Waiting for controller",
        '["DFW"]',
    ]


DEFAULTED: Final[dict[str, tuple[JsonObject, tuple[str, ...], JsonValue]]] = {
    "scale settings name their policy": (
        changed("Workload", take("/spec/placements/0/scaleSettings/instanceManagementPolicy")),
        ("spec", "placements", "0", "scaleSettings", "instanceManagementPolicy"),
        "OrderedReady",
    ),
    "a disk has a type": (
        changed(
            "Workload",
            put(
                f"{TEMPLATE}/volumes",
                [{"name": "data", "disk": {"template": {"spec": {}}}}],
            ),
        ),
        ("spec", "template", "spec", "volumes", "0", "disk", "template", "spec", "type"),
        "pd-standard",
    ),
    "a ConfigMap volume has a name": (
        changed("Workload", put(f"{TEMPLATE}/volumes", [{"name": "c", "configMap": {}}])),
        ("spec", "template", "spec", "volumes", "0", "configMap", "name"),
        "",
    ),
    "a key of a Secret has a name": (
        changed(
            "Workload",
            put(f"{CONTAINER}/env", [{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}]),
        ),
        (*CONTAINER[1:].split("/"), "env", "0", "valueFrom", "secretKeyRef", "name"),
        "",
    ),
}


def value_at(value: JsonValue, path: tuple[str, ...]) -> JsonValue:
    for step in path:
        value = value[int(step)] if isinstance(value, list) else object_at(value)[step]
    return value


@pytest.mark.parametrize("case", sorted(DEFAULTED))
async def test_what_is_left_out_is_defaulted(api: Api, compute: str, case: str) -> None:
    sent, path, desired = DEFAULTED[case]
    made = (await api.post(f"{compute}/workloads", sent, fieldValidation="Strict")).expect(201)
    assert value_at(made, path) == desired


PRUNED: Final[dict[str, tuple[str, JsonValue]]] = {
    "spec.gateway": ("/spec/gateway", {"name": "g"}),
    "spec.template.metadata.uid": ("/spec/template/metadata/uid", "u"),
    "spec.template.spec.hostNetwork": (f"{TEMPLATE}/hostNetwork", True),
    "spec.template.spec.runtime.sandbox.containers[0].privileged": (
        f"{CONTAINER}/privileged",
        True,
    ),
    "spec.placements[0].region": ("/spec/placements/0/region", "us"),
}


@pytest.mark.parametrize("field", sorted(PRUNED))
async def test_what_the_schema_does_not_know_is_pruned_and_told(
    api: Api, compute: str, field: str
) -> None:
    path, value = PRUNED[field]
    base = json_patch(an_object("Workload"), [_ensure_template_metadata()])
    sent = json_patch(base, [put(path, value)])
    reply = await api.post(f"{compute}/workloads", sent, fieldValidation="Warn")
    assert reply.expect(201)["spec"] == base["spec"]
    # A header is quoted, so quotes in it are escaped.
    warnings = " ".join(reply.warnings).replace(chr(92), "")
    assert f'unknown field "{field}"' in warnings
    strict = await api.post(f"{compute}/workloads", sent, fieldValidation="Strict")
    assert f'unknown field "{field}"' in strict.message


def _ensure_template_metadata() -> JsonObject:
    return put("/spec/template/metadata", {"labels": {"tier": "web"}, "annotations": {"a": "b"}})


async def test_a_template_keeps_the_metadata_it_may_have(api: Api, compute: str) -> None:
    kept: JsonObject = {
        "name": "n",
        "namespace": "s",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "finalizers": ["example.com/f"],
    }
    sent = changed("Workload", put("/spec/template/metadata", kept))
    made = (await api.post(f"{compute}/workloads", sent, fieldValidation="Strict")).expect(201)
    assert object_at(made, "spec", "template")["metadata"] == kept


@pytest.mark.parametrize("kind", ["Instance", "WorkloadDeployment"])
async def test_an_object_of_these_kinds_may_lack_its_spec(
    api: Api, compute: str, kind: str
) -> None:
    sent = an_object(kind)
    del sent["spec"]
    (await api.post(f"{compute}/{PLURALS[kind]}", sent)).expect(201)


VOLUME: Final[JsonObject] = {"name": "data", "disk": {"template": {"spec": {}}}}
REFUSED: Final[dict[str, tuple[str, JsonObject]]] = {
    "no spec": ("spec", take("/spec")),
    "no placements": ("spec.placements", put("/spec/placements", [])),
    "no template": ("spec.template", take("/spec/template")),
    "no runtime": ("spec.template.spec.runtime", take(RUNTIME)),
    "no instance type": (
        "spec.template.spec.runtime.resources.instanceType",
        take(f"{RUNTIME}/resources/instanceType"),
    ),
    "no containers": (
        "spec.template.spec.runtime.sandbox.containers",
        put(f"{RUNTIME}/sandbox/containers", []),
    ),
    "a container without an image": (
        "spec.template.spec.runtime.sandbox.containers[0].image",
        take(f"{CONTAINER}/image"),
    ),
    "no network interfaces": (
        "spec.template.spec.networkInterfaces",
        put(f"{TEMPLATE}/networkInterfaces", []),
    ),
    "a port below 1": (
        "spec.template.spec.runtime.sandbox.containers[0].ports[0].port",
        put(f"{CONTAINER}/ports", [{"name": "http", "port": 0}]),
    ),
    "a port above 65535": (
        "spec.template.spec.runtime.sandbox.containers[0].ports[0].port",
        put(f"{CONTAINER}/ports", [{"name": "http", "port": 65536}]),
    ),
    "two volumes of one name": (
        "spec.template.spec.volumes[1]",
        put(f"{TEMPLATE}/volumes", [VOLUME, VOLUME]),
    ),
    "an unknown file system": (
        "spec.template.spec.volumes[0].disk.template.spec.populator.filesystem.type",
        put(
            f"{TEMPLATE}/volumes",
            [
                {
                    "name": "data",
                    "disk": {"template": {"spec": {"populator": {"filesystem": {"type": "xfs"}}}}},
                }
            ],
        ),
    ),
    "a quantity that is none": (
        "spec.template.spec.runtime.resources.requests.cpu",
        put(f"{RUNTIME}/resources/requests", {"cpu": "lots"}),
    ),
    "replicas in words": (
        "spec.placements[0].scaleSettings.minReplicas",
        put("/spec/placements/0/scaleSettings/minReplicas", "three"),
    ),
    "replicas beyond 64 bits": (
        "spec.placements[0].scaleSettings.minReplicas",
        put("/spec/placements/0/scaleSettings/minReplicas", 2**63),
    ),
    "no replicas": (
        "spec.placements[0].scaleSettings.minReplicas",
        take("/spec/placements/0/scaleSettings/minReplicas"),
    ),
    "half a location": (
        "spec.template.spec.location.namespace",
        put(f"{TEMPLATE}/location", {"name": "dfw"}),
    ),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
async def test_what_the_schema_forbids_is_refused_with_its_field(
    api: Api, compute: str, case: str
) -> None:
    field, change = REFUSED[case]
    reply = await api.post(f"{compute}/workloads", changed("Workload", change))
    assert (reply.status, reply.reason) == (422, "Invalid")
    fields = [string_at(cause, "field") for cause in objects_at(reply.details, "causes")]
    assert field in fields


# Rules of the schema, without any webhook: field, kind and part of the refusal.
RULED: Final[dict[str, tuple[str, str, JsonObject]]] = {
    "no city": (
        "spec.placements[0].cityCodes",
        "FieldValueRequired",
        put("/spec/placements/0/cityCodes", []),
    ),
    "no replicas wanted": (
        "spec.placements[0].scaleSettings.minReplicas",
        "FieldValueInvalid",
        put("/spec/placements/0/scaleSettings/minReplicas", 0),
    ),
    "replicas beyond 32 bits": (
        "spec.placements[0].scaleSettings.minReplicas",
        "FieldValueInvalid",
        put("/spec/placements/0/scaleSettings/minReplicas", 2**31),
    ),
    "at most fewer than at least": (
        "spec.placements[0].scaleSettings.maxReplicas",
        "FieldValueInvalid",
        put("/spec/placements/0/scaleSettings", {"minReplicas": 3, "maxReplicas": 2}),
    ),
    "more than 1000": (
        "spec.placements[0].scaleSettings.maxReplicas",
        "FieldValueInvalid",
        put("/spec/placements/0/scaleSettings/maxReplicas", 1001),
    ),
    "neither sandbox nor machine": (
        "spec.template.spec.runtime",
        "FieldValueRequired",
        put(RUNTIME, {"resources": {"instanceType": "datumcloud/d1-standard-2"}}),
    ),
    "a sandbox and a machine": (
        "spec.template.spec.runtime.virtualMachine",
        "FieldValueForbidden",
        put(f"{RUNTIME}/virtualMachine", {"volumeAttachments": [{"name": "boot"}]}),
    ),
    "a volume of nothing": (
        "spec.template.spec.volumes[0]",
        "FieldValueRequired",
        put(f"{TEMPLATE}/volumes", [{"name": "data"}]),
    ),
    "a disk that is a ConfigMap": (
        "spec.template.spec.volumes[0].configMap",
        "FieldValueForbidden",
        put(f"{TEMPLATE}/volumes", [{**VOLUME, "configMap": {"name": "c"}}]),
    ),
    "a ConfigMap that is a Secret": (
        "spec.template.spec.volumes[0].secret",
        "FieldValueForbidden",
        put(f"{TEMPLATE}/volumes", [{"name": "c", "configMap": {"name": "c"}, "secret": {}}]),
    ),
    "a location": (
        "spec.template.spec.location",
        "FieldValueForbidden",
        put(f"{TEMPLATE}/location", {"name": "dfw", "namespace": ""}),
    ),
    "gates": (
        "spec.template.spec.controller",
        "FieldValueForbidden",
        put(f"{TEMPLATE}/controller", {"templateHash": "v1-0"}),
    ),
    "a label of the platform": (
        "spec.template.metadata.labels",
        "FieldValueForbidden",
        put("/spec/template/metadata", {"labels": {"compute.datumapis.com/workload-uid": "u"}}),
    ),
    "an annotation of the platform": (
        "spec.template.metadata.annotations",
        "FieldValueForbidden",
        put("/spec/template/metadata", {"annotations": {"meta.datumapis.com/x": "u"}}),
    ),
}


@pytest.mark.parametrize("case", sorted(RULED))
async def test_a_rule_of_the_schema_refuses_without_a_webhook(
    api: Api, compute: str, case: str
) -> None:
    field, reason, change = RULED[case]
    reply = await api.post(f"{compute}/workloads", changed("Workload", change))
    assert (reply.status, reply.reason) == (422, "Invalid")
    (cause,) = objects_at(reply.details, "causes")
    assert (string_at(cause, "field"), string_at(cause, "reason")) == (field, reason)


@pytest.mark.parametrize("case", sorted(RULED))
def test_the_webhook_refuses_the_same_field_for_the_same_reason(case: str) -> None:
    field, reason, change = RULED[case]
    facts = Facts("acme", NETWORKING_OFF, NETWORKING_OFF)
    found = review_workload(changed("Workload", change), None, facts)
    assert isinstance(found, tuple)
    refused = [(each.path.text, each.kind.value) for each in found]
    # The webhook also names the key of a map.
    assert any(path.startswith(field) and kind == reason for path, kind in refused), refused


async def test_annotations_of_users_pass_the_rules(api: Api, compute: str) -> None:
    allowed: JsonObject = {
        "compute.datumapis.com/ssh-keys": "a:ssh-ed25519 AAAA",
        "compute.datumapis.com/restartedAt": "2026-01-01T00:00:00Z",
        "example.com/a": "b",
    }
    sent = changed("Workload", put("/spec/template/metadata", {"annotations": allowed}))
    (await api.post(f"{compute}/workloads", sent)).expect(201)


# The webhook refuses these, if there is one; the schema admits them (api.md 12.3).
PASSED: Final[dict[str, JsonObject]] = {
    "metrics of no number": put("/spec/placements/0/scaleSettings/metrics", [{}]),
    "another policy": put("/spec/placements/0/scaleSettings/instanceManagementPolicy", "Parallel"),
    "an unknown instance type": put(f"{RUNTIME}/resources/instanceType", "huge"),
    "a protocol of its own": put(
        f"{CONTAINER}/ports", [{"name": "http", "port": 80, "protocol": "QUIC"}]
    ),
}


@pytest.mark.parametrize("case", sorted(PASSED))
async def test_what_only_the_webhook_knows_passes_the_schema(
    api: Api, compute: str, case: str
) -> None:
    (await api.post(f"{compute}/workloads", changed("Workload", PASSED[case]))).expect(201)


CONDITION: Final[JsonObject] = {
    "type": "Ready",
    "status": "True",
    "reason": "Fine",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
BAD_CONDITIONS: Final[dict[str, JsonObject]] = {
    "status": {**CONDITION, "status": "Maybe"},
    "reason": {**CONDITION, "reason": "Not a word"},
    "type": {**CONDITION, "type": "not ready"},
    "observedGeneration": {**CONDITION, "observedGeneration": -1},
    "lastTransitionTime": {**CONDITION, "lastTransitionTime": "yesterday"},
}


@pytest.mark.parametrize("field", sorted(BAD_CONDITIONS))
async def test_a_condition_is_held_to_its_form(api: Api, compute: str, field: str) -> None:
    (await api.post(f"{compute}/instances", an_object("Instance"))).expect(201)
    status: JsonObject = {"conditions": [BAD_CONDITIONS[field]]}
    reply = await api.merge(f"{compute}/instances/one/status", {"status": status})
    assert (reply.status, reply.reason) == (422, "Invalid")
    (cause, *_) = objects_at(reply.details, "causes")
    assert string_at(cause, "field") == f"status.conditions[0].{field}"
    good: JsonObject = {"conditions": [CONDITION]}
    (await api.merge(f"{compute}/instances/one/status", {"status": good})).expect(200)
