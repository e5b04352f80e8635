"""The generated CRDs against docs/spec/api.md 1 to 7 and 16 and the rules of structure."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from jsonschema import Draft202012Validator

from compute_api_types import scalars
from compute_api_types.crd import (
    UnstructuralSchemaError,
    derive_crds,
    to_structural,
    with_rules,
)
from compute_api_types.quantity import PATTERN
from compute_api_types.validation.schema_rules import SchemaRule
from compute_api_types.wire import JsonObject, JsonValue

KINDS = ("Workload", "WorkloadDeployment", "Instance")


def obj(value: JsonValue) -> JsonObject:
    assert isinstance(value, dict)
    return value


def items(value: JsonValue) -> list[JsonValue]:
    assert isinstance(value, list)
    return value


CRDS = {str(obj(obj(each["spec"])["names"])["kind"]): each for each in derive_crds()}


def version_of(kind: str) -> JsonObject:
    (version,) = items(obj(CRDS[kind]["spec"])["versions"])
    return obj(version)


def schema_of(kind: str) -> JsonObject:
    return obj(obj(version_of(kind)["schema"])["openAPIV3Schema"])


class Node(NamedTuple):
    """One schema and where it is: `spec.placements[].name`; values of a map end in `{}`."""

    path: str
    schema: JsonObject


def walk(path: str, schema: JsonObject) -> Iterator[Node]:
    yield Node(path, schema)
    for name, field in obj(schema.get("properties", {})).items():
        yield from walk(f"{path}.{name}" if path else name, obj(field))
    if "items" in schema:
        yield from walk(f"{path}[]", obj(schema["items"]))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(f"{path}{{}}", obj(schema["additionalProperties"]))


NODES = {kind: list(walk("", schema_of(kind))) for kind in KINDS}
ALL_NODES = [(kind, node) for kind in KINDS for node in NODES[kind]]


# --- documents (16, "Document") -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "plural", "required"),
    [
        ("Workload", "workloads", ["spec"]),
        ("WorkloadDeployment", "workloaddeployments", None),
        ("Instance", "instances", None),
    ],
)
def test_a_document_has_names_scope_one_version_and_nothing_else(
    kind: str, plural: str, required: list[str] | None
) -> None:
    document = CRDS[kind]
    assert document["apiVersion"] == "apiextensions.k8s.io/v1"
    assert document["metadata"] == {
        "name": f"{plural}.compute.datumapis.com",
        "annotations": {"discovery.miloapis.com/parent-contexts": "Project"},
    }
    spec = obj(document["spec"])
    assert set(spec) == {"group", "names", "scope", "versions"}
    assert (spec["group"], spec["scope"]) == ("compute.datumapis.com", "Namespaced")
    assert spec["names"] == {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        "shortNames": [{"Workload": "cwl", "WorkloadDeployment": "cwd", "Instance": "cinst"}[kind]],
        "categories": ["compute"],
    }
    version = version_of(kind)
    assert set(version) == {
        "additionalPrinterColumns",
        "name",
        "schema",
        "served",
        "storage",
        "subresources",
    }
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha", True, True)
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    others = {"scale": scale} if kind == "WorkloadDeployment" else {}
    assert version["subresources"] == {"status": {}, **others}
    assert schema_of(kind).get("required") == required


@pytest.mark.parametrize("kind", KINDS)
def test_the_root_has_five_properties_and_leaves_metadata_to_the_server(kind: str) -> None:
    properties = obj(schema_of(kind)["properties"])
    assert list(properties) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert properties["metadata"] == {"type": "object"}
    assert [obj(properties[name])["type"] for name in ("apiVersion", "kind")] == ["string"] * 2


def test_documents_are_the_same_every_time_and_plain_json() -> None:
    assert json.dumps(derive_crds()) == json.dumps(derive_crds())


# --- structural schemas ---------------------------------------------------------------------------

ALLOWED = {
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_structural(kind: str) -> None:
    for path, schema in NODES[kind]:
        assert set(schema) <= ALLOWED, path
        if schema.get("x-kubernetes-int-or-string"):
            assert schema["anyOf"] == INT_OR_STRING, path
            assert "type" not in schema, path
        else:
            assert "anyOf" not in schema, path
            assert schema["type"] in {"array", "boolean", "integer", "object", "string"}, path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert not isinstance(schema.get("additionalProperties"), bool), path
        assert ("items" in schema) == (schema.get("type") == "array"), path
        assert (schema.get("type") == "integer") == (schema.get("format") in {"int32", "int64"}), (
            path
        )
        for name in items(schema.get("required", [])):
            assert name in obj(schema["properties"]), path
        assert schema.get("required") != [], path


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_list_maps_are_required_strings(kind: str) -> None:
    for path, schema in NODES[kind]:
        if schema.get("x-kubernetes-list-type") == "map":
            element = obj(schema["items"])
            assert "name" in items(element["required"]), path
            assert obj(obj(element["properties"])["name"])["type"] == "string", path


@pytest.mark.parametrize("kind", KINDS)
def test_every_default_is_valid_against_its_own_schema(kind: str) -> None:
    for path, schema in NODES[kind]:
        if "default" in schema:
            validator = Draft202012Validator(schema)
            # The stubs leave the second, unused argument without a type.
            fits = validator.is_valid(schema["default"])  # pyright: ignore[reportUnknownMemberType]
            assert fits, path


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_and_fields_are_described(kind: str) -> None:
    for path, schema in NODES[kind]:
        is_field = not path.endswith(("[]", "{}")) and path != "metadata"
        if is_field:
            assert str(schema.get("description", "")).strip().endswith("."), path


# --- exhaustive lists (16): each marker is exactly where the specification has it -----------------

S = "spec"  # of Instance
T = "spec.template.spec"  # of Workload and WorkloadDeployment
SPEC_OF = {"Workload": T, "WorkloadDeployment": T, "Instance": S}
COUNTERS = ("replicas", "currentReplicas", "updatedReplicas", "desiredReplicas", "readyReplicas")


def in_instance_spec(*paths: str) -> dict[str, set[str]]:
    return {kind: {f"{prefix}.{path}" for path in paths} for kind, prefix in SPEC_OF.items()}


def union(*parts: dict[str, set[str]]) -> dict[str, set[str]]:
    return {kind: set().union(*(part.get(kind, set()) for part in parts)) for kind in KINDS}


SCALE = {
    "Workload": "spec.placements[].scaleSettings",
    "WorkloadDeployment": "spec.scaleSettings",
}
SANDBOX = "runtime.sandbox.containers[]"
MACHINE = "runtime.virtualMachine"
CONDITIONS = {
    "Workload": {"status.conditions[]", "status.placements[].conditions[]"},
    "WorkloadDeployment": {"status.conditions[]"},
    "Instance": {"status.conditions[]"},
}


def in_conditions(field: str) -> dict[str, set[str]]:
    return {kind: {f"{path}.{field}" for path in paths} for kind, paths in CONDITIONS.items()}


REQUIRED_INTEGERS = {
    "Workload": {
        *(f"status.{name}" for name in (*COUNTERS, "deployments", "observedGeneration")),
        *(f"status.placements[].{name}" for name in COUNTERS),
    },
    "WorkloadDeployment": {f"status.{name}" for name in (*COUNTERS, "observedGeneration")},
}
QUANTITIES = union(
    in_instance_spec(
        "runtime.resources.requests{}",
        f"{SANDBOX}.resources.limits{{}}",
        f"{SANDBOX}.resources.requests{{}}",
        f"{SANDBOX}.env[].valueFrom.resourceFieldRef.divisor",
        "volumes[].disk.template.spec.resources.requests{}",
    ),
    {
        kind: {
            f"{scale}.metrics[].resource.target.value",
            f"{scale}.metrics[].resource.target.averageValue",
        }
        for kind, scale in SCALE.items()
    },
)
INGRESS = "networkInterfaces[].networkPolicy.ingress[]"

MARKERS: dict[str, dict[str, set[str]]] = {
    "default": union(
        {kind: {f"{scale}.instanceManagementPolicy"} for kind, scale in SCALE.items()},
        in_instance_spec(
            "volumes[].disk.template.spec.type",
            f"{SANDBOX}.env[].valueFrom.configMapKeyRef.name",
            f"{SANDBOX}.env[].valueFrom.secretKeyRef.name",
            f"{SANDBOX}.envFrom[].configMapRef.name",
            f"{SANDBOX}.envFrom[].secretRef.name",
            "volumes[].configMap.name",
        ),
        {kind: {"status"} for kind in KINDS},
        REQUIRED_INTEGERS,
    ),
    "enum": union(
        in_instance_spec("volumes[].disk.template.spec.populator.filesystem.type"),
        in_conditions("status"),
    ),
    "minItems": union(
        {"Workload": {"spec.placements"}},
        in_instance_spec(
            "runtime.sandbox.containers",
            f"{MACHINE}.volumeAttachments",
            "networkInterfaces",
        ),
    ),
    "maximum": in_instance_spec(f"{SANDBOX}.ports[].port", f"{MACHINE}.ports[].port"),
    "minimum": union(
        in_instance_spec(f"{SANDBOX}.ports[].port", f"{MACHINE}.ports[].port"),
        in_conditions("observedGeneration"),
        {"WorkloadDeployment": {"spec.replicas", "status.observedTemplateGeneration"}},
    ),
    "x-kubernetes-list-type=map": union(
        {"Workload": {"spec.placements"}},
        in_instance_spec(
            "runtime.sandbox.containers",
            f"{SANDBOX}.env",
            f"{SANDBOX}.ports",
            f"{MACHINE}.ports",
            "volumes",
            "controller.schedulingGates",
        ),
    ),
    "x-kubernetes-list-type=set": union({"Workload": {"spec.placements[].cityCodes"}}),
    "x-kubernetes-list-type=atomic": in_instance_spec(
        f"{INGRESS}.from",
        f"{INGRESS}.from[].ipBlock.except",
        f"{INGRESS}.ports",
        "volumes[].configMap.items",
        "volumes[].secret.items",
    ),
    "x-kubernetes-map-type": in_instance_spec(
        f"{SANDBOX}.env[].valueFrom.configMapKeyRef",
        f"{SANDBOX}.env[].valueFrom.secretKeyRef",
        f"{SANDBOX}.env[].valueFrom.fieldRef",
        f"{SANDBOX}.env[].valueFrom.resourceFieldRef",
        f"{SANDBOX}.envFrom[].configMapRef",
        f"{SANDBOX}.envFrom[].secretRef",
        "volumes[].configMap",
    ),
    "x-kubernetes-int-or-string": union(QUANTITIES, in_instance_spec(f"{INGRESS}.ports[].port")),
    "pattern": union(QUANTITIES, in_conditions("type"), in_conditions("reason")),
    "x-kubernetes-preserve-unknown-fields": union({"Workload": {"status.gateway"}}),
    # Of Workloads alone, although all three kinds have a template and two have scale settings.
    "x-kubernetes-validations": union(
        {
            "Workload": {
                "spec.placements[].cityCodes",
                "spec.placements[].scaleSettings",
                "spec.placements[].scaleSettings.maxReplicas",
                "spec.placements[].scaleSettings.minReplicas",
                "spec.template.metadata.annotations",
                "spec.template.metadata.labels",
                "spec.template.spec",
                "spec.template.spec.runtime",
                "spec.template.spec.volumes[]",
            }
        }
    ),
}


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_marker_is_where_the_specification_has_it_and_nowhere_else(
    kind: str, marker: str
) -> None:
    key, _, value = marker.partition("=")
    marked = {
        path
        for path, schema in NODES[kind]
        if key in schema and (not value or schema[key] == value)
    }
    assert marked == MARKERS[marker][kind]


def node(kind: str, path: str) -> JsonObject:
    return next(schema for at, schema in NODES[kind] if at == path)


def test_values_of_markers() -> None:
    for kind, (path, schema) in ALL_NODES:
        if "minItems" in schema:
            assert schema["minItems"] == 1
        if "maximum" in schema:
            assert (schema["minimum"], schema["maximum"]) == (1, 65535)
        elif "minimum" in schema:
            assert schema["minimum"] == 0
        if schema.get("x-kubernetes-list-type") == "map":
            assert schema["x-kubernetes-list-map-keys"] == ["name"]
        else:
            assert "x-kubernetes-list-map-keys" not in schema
        if "x-kubernetes-map-type" in schema:
            assert schema["x-kubernetes-map-type"] == "atomic"
        if path in QUANTITIES[kind]:
            assert schema["pattern"] == PATTERN
    assert node("Workload", f"{T}.volumes[].disk.template.spec.populator.filesystem.type")[
        "enum"
    ] == ["ext4"]
    assert node("Instance", "status.conditions[].status")["enum"] == ["True", "False", "Unknown"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.placements[].scaleSettings.instanceManagementPolicy", "OrderedReady"),
        (f"{T}.volumes[].disk.template.spec.type", "pd-standard"),
        (f"{T}.volumes[].configMap.name", ""),
        (f"{T}.{SANDBOX}.env[].valueFrom.configMapKeyRef.name", ""),
        (f"{T}.{SANDBOX}.env[].valueFrom.secretKeyRef.name", ""),
        (f"{T}.{SANDBOX}.envFrom[].configMapRef.name", ""),
        (f"{T}.{SANDBOX}.envFrom[].secretRef.name", ""),
        ("status.deployments", 0),
        ("status.placements[].readyReplicas", 0),
    ],
)
def test_values_of_defaults(path: str, value: JsonValue) -> None:
    assert node("Workload", path)["default"] == value


def test_conditions_are_constrained_as_kubernetes_does() -> None:
    condition = node("Instance", "status.conditions[]")
    assert condition["required"] == [
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
    ]
    fields = {name: obj(field) for name, field in obj(condition["properties"]).items()}
    stripped = {
        name: {key: value for key, value in field.items() if key != "description"}
        for name, field in fields.items()
    }
    assert stripped == {
        "type": {
            "type": "string",
            "maxLength": 316,
            "pattern": (
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            ),
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {"type": "string", "maxLength": 32768},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    }


# --- field tables (2 to 5): every path, its type, whether it is required --------------------------

TEMPLATE_META = {
    "name": "string",
    "namespace": "string",
    "labels": "object",
    "labels{}": "string",
    "annotations": "object",
    "annotations{}": "string",
    "finalizers": "array",
    "finalizers[]": "string",
}
ATTACHMENT = {"*name": "string", "mountPath": "string"}
PORT = {"*name": "string", "*port": "int32", "protocol": "string"}
KEY_ITEMS = {
    "": "array",
    "[]": "object",
    "[].*key": "string",
    "[].*path": "string",
    "[].mode": "int32",
}
ENV_SOURCE = {"": "object", ".name": "string", ".optional": "boolean"}
KEY_REF = {"": "object", ".*key": "string", ".name": "string", ".optional": "boolean"}


def below(prefix: str, fields: dict[str, str]) -> dict[str, str]:
    return {f"{prefix}{path}": kind for path, kind in fields.items()}


INSTANCE_SPEC = {
    "*runtime": "object",
    "runtime.*resources": "object",
    "runtime.resources.*instanceType": "string",
    "runtime.resources.requests": "object",
    "runtime.resources.requests{}": "int-or-string",
    "runtime.sandbox": "object",
    "runtime.sandbox.*containers": "array",
    SANDBOX: "object",
    **below(f"{SANDBOX}.", {"*name": "string", "*image": "string"}),
    **below(f"{SANDBOX}.command", {"": "array", "[]": "string"}),
    **below(f"{SANDBOX}.args", {"": "array", "[]": "string"}),
    **below(f"{SANDBOX}.env", {"": "array", "[]": "object", "[].*name": "string"}),
    **below(f"{SANDBOX}.envFrom", {"": "array", "[]": "object", "[].prefix": "string"}),
    **below(f"{SANDBOX}.envFrom[].configMapRef", ENV_SOURCE),
    **below(f"{SANDBOX}.envFrom[].secretRef", ENV_SOURCE),
    **below(f"{SANDBOX}.env[].", {"value": "string", "valueFrom": "object"}),
    **below(f"{SANDBOX}.env[].valueFrom.configMapKeyRef", KEY_REF),
    **below(f"{SANDBOX}.env[].valueFrom.secretKeyRef", KEY_REF),
    **below(
        f"{SANDBOX}.env[].valueFrom.fieldRef",
        {"": "object", ".*fieldPath": "string", ".apiVersion": "string"},
    ),
    **below(
        f"{SANDBOX}.env[].valueFrom.resourceFieldRef",
        {
            "": "object",
            ".*resource": "string",
            ".containerName": "string",
            ".divisor": "int-or-string",
        },
    ),
    **below(
        f"{SANDBOX}.resources",
        {
            "": "object",
            ".limits": "object",
            ".limits{}": "int-or-string",
            ".requests": "object",
            ".requests{}": "int-or-string",
        },
    ),
    **below(f"{SANDBOX}.volumeAttachments", {"": "array", "[]": "object"}),
    **below(f"{SANDBOX}.volumeAttachments[].", ATTACHMENT),
    **below(f"{SANDBOX}.ports", {"": "array", "[]": "object"}),
    **below(f"{SANDBOX}.ports[].", PORT),
    **below(
        "runtime.sandbox.imagePullSecrets", {"": "array", "[]": "object", "[].*name": "string"}
    ),
    MACHINE: "object",
    f"{MACHINE}.*volumeAttachments": "array",
    f"{MACHINE}.volumeAttachments[]": "object",
    **below(f"{MACHINE}.volumeAttachments[].", ATTACHMENT),
    **below(f"{MACHINE}.ports", {"": "array", "[]": "object"}),
    **below(f"{MACHINE}.ports[].", PORT),
    "*networkInterfaces": "array",
    "networkInterfaces[]": "object",
    "networkInterfaces[].*network": "object",
    **below("networkInterfaces[].network.", {"*name": "string", "namespace": "string"}),
    "networkInterfaces[].networkPolicy": "object",
    "networkInterfaces[].networkPolicy.ingress": "array",
    INGRESS: "object",
    **below(f"{INGRESS}.from", {"": "array", "[]": "object", "[].ipBlock": "object"}),
    **below(
        f"{INGRESS}.from[].ipBlock.", {"*cidr": "string", "except": "array", "except[]": "string"}
    ),
    **below(f"{INGRESS}.ports", {"": "array", "[]": "object"}),
    **below(
        f"{INGRESS}.ports[].", {"port": "int-or-string", "endPort": "int32", "protocol": "string"}
    ),
    "volumes": "array",
    "volumes[]": "object",
    "volumes[].*name": "string",
    "volumes[].disk": "object",
    "volumes[].disk.deviceName": "string",
    "volumes[].disk.*template": "object",
    "volumes[].disk.template.metadata": "object",
    **below("volumes[].disk.template.metadata.", TEMPLATE_META),
    "volumes[].disk.template.*spec": "object",
    **below(
        "volumes[].disk.template.spec.",
        {
            "type": "string",
            "resources": "object",
            "resources.requests": "object",
            "resources.requests{}": "int-or-string",
            "populator": "object",
            "populator.image": "object",
            "populator.image.*name": "string",
            "populator.filesystem": "object",
            "populator.filesystem.*type": "string",
        },
    ),
    **below(
        "volumes[].configMap",
        {"": "object", ".name": "string", ".defaultMode": "int32", ".optional": "boolean"},
    ),
    **below("volumes[].configMap.items", KEY_ITEMS),
    **below(
        "volumes[].secret",
        {"": "object", ".secretName": "string", ".defaultMode": "int32", ".optional": "boolean"},
    ),
    **below("volumes[].secret.items", KEY_ITEMS),
    "location": "object",
    "location.*name": "string",
    "location.*namespace": "string",
    "controller": "object",
    "controller.*templateHash": "string",
    "controller.schedulingGates": "array",
    "controller.schedulingGates[]": "object",
    "controller.schedulingGates[].*name": "string",
}
TEMPLATE = {
    "metadata": "object",
    **below("metadata.", TEMPLATE_META),
    "*spec": "object",
    **below("spec.", INSTANCE_SPEC),
}
SCALE_SETTINGS = {
    "*minReplicas": "int32",
    "maxReplicas": "int32",
    "metrics": "array",
    "metrics[]": "object",
    "metrics[].resource": "object",
    "metrics[].resource.*name": "string",
    "metrics[].resource.*target": "object",
    "metrics[].resource.target.value": "int-or-string",
    "metrics[].resource.target.averageValue": "int-or-string",
    "metrics[].resource.target.averageUtilization": "int32",
    "*instanceManagementPolicy": "string",
}
CONDITION_FIELDS = {
    "": "array",
    "[]": "object",
    "[].*type": "string",
    "[].*status": "string",
    "[].*reason": "string",
    "[].*message": "string",
    "[].*lastTransitionTime": "string",
    "[].observedGeneration": "int64",
}
COUNTER_FIELDS = {f"*{name}": "int32" for name in COUNTERS}
LOCATION = {"": "object", ".*name": "string", ".*namespace": "string"}
ROOT = {"": "object", "apiVersion": "string", "kind": "string", "metadata": "object"}

FIELDS = {
    "Instance": {
        **ROOT,
        "spec": "object",
        **below("spec.", INSTANCE_SPEC),
        "status": "object",
        **below("status.conditions", CONDITION_FIELDS),
        "status.networkInterfaces": "array",
        "status.networkInterfaces[]": "object",
        "status.networkInterfaces[].assignments": "object",
        "status.networkInterfaces[].assignments.networkIP": "string",
        "status.networkInterfaces[].assignments.externalIP": "string",
        "status.controller": "object",
        "status.controller.*observedTemplateHash": "string",
        "status.controller.suspendedObserved": "boolean",
        "status.suspended": "boolean",
    },
    "WorkloadDeployment": {
        **ROOT,
        "spec": "object",
        "spec.*workloadRef": "object",
        "spec.workloadRef.*name": "string",
        "spec.workloadRef.*uid": "string",
        "spec.*placementName": "string",
        "spec.*cityCode": "string",
        "spec.*template": "object",
        **below("spec.template.", TEMPLATE),
        "spec.*scaleSettings": "object",
        **below("spec.scaleSettings.", SCALE_SETTINGS),
        "spec.replicas": "int32",
        "status": "object",
        "status.selector": "string",
        **below("status.location", LOCATION),
        **below("status.conditions", CONDITION_FIELDS),
        **below("status.", COUNTER_FIELDS),
        "status.*observedGeneration": "int64",
        "status.observedTemplateGeneration": "int64",
        "status.observedTemplateUID": "string",
        "status.suspended": "boolean",
    },
    "Workload": {
        **ROOT,
        "*spec": "object",
        "spec.*template": "object",
        **below("spec.template.", TEMPLATE),
        "spec.*placements": "array",
        "spec.placements[]": "object",
        "spec.placements[].*name": "string",
        "spec.placements[].*cityCodes": "array",
        "spec.placements[].cityCodes[]": "string",
        "spec.placements[].*scaleSettings": "object",
        **below("spec.placements[].scaleSettings.", SCALE_SETTINGS),
        "status": "object",
        "status.gateway": "object",
        **below("status.conditions", CONDITION_FIELDS),
        "status.*deployments": "int32",
        **below("status.", COUNTER_FIELDS),
        "status.*observedGeneration": "int64",
        "status.placements": "array",
        "status.placements[]": "object",
        "status.placements[].*name": "string",
        **below("status.placements[].conditions", CONDITION_FIELDS),
        **below("status.placements[].", COUNTER_FIELDS),
    },
}


def shape(kind: str) -> dict[str, str]:
    """Every path with its type; `*` before the last segment of a required field."""
    required = {
        f"{path}.{name}" if path else str(name)
        for path, schema in NODES[kind]
        for name in items(schema.get("required", []))
    }
    types: dict[str, str] = {}
    for path, schema in NODES[kind]:
        parent, dot, last = path.rpartition(".")
        marked = f"{parent}{dot}*{last}" if path in required else path
        types[marked] = (
            "int-or-string"
            if "anyOf" in schema
            else str(schema["format"])
            if schema["type"] == "integer"
            else str(schema["type"])
        )
    return types


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_the_specification_is_there_with_its_type_and_no_other(kind: str) -> None:
    assert shape(kind) == FIELDS[kind]


# --- printer columns (6) --------------------------------------------------------------------------


def c(condition_type: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{condition_type}")].{field}'


COLUMNS = {
    "Workload": [
        ("Age", "date", ".metadata.creationTimestamp", 0),
        ("Available", "string", c("Available", "status"), 0),
        ("Reason", "string", c("Available", "reason"), 0),
        ("Deployments", "string", ".status.deployments", 0),
        ("Replicas", "string", ".status.replicas", 0),
        ("Ready", "string", ".status.readyReplicas", 0),
        ("Desired", "string", ".status.desiredReplicas", 0),
        ("Up-to-date", "string", ".status.updatedReplicas", 0),
        ("Message", "string", c("Ready", "message"), 1),
        ("Cities", "string", ".spec.placements[*].cityCodes", 0),
    ],
    "WorkloadDeployment": [
        ("Age", "date", ".metadata.creationTimestamp", 0),
        ("Available", "string", c("Available", "status"), 0),
        ("Reason", "string", c("Available", "reason"), 0),
        ("Replicas", "string", ".status.replicas", 0),
        ("Ready", "string", ".status.readyReplicas", 0),
        ("Desired", "string", ".status.desiredReplicas", 0),
        ("Up-to-date", "string", ".status.updatedReplicas", 0),
        ("Location Namespace", "string", ".status.location.namespace", 1),
        ("Location Name", "string", ".status.location.name", 1),
        ("City", "string", ".spec.cityCode", 0),
        ("Message", "string", c("Ready", "message"), 1),
    ],
    "Instance": [
        ("Age", "date", ".metadata.creationTimestamp", 0),
        ("Ready", "string", c("Ready", "status"), 0),
        ("Reason", "string", c("Ready", "reason"), 0),
        ("Network IP", "string", ".status.networkInterfaces[0].assignments.networkIP", 0),
        ("External IP", "string", ".status.networkInterfaces[0].assignments.externalIP", 0),
        ("Message", "string", c("Ready", "message"), 1),
        ("Quota", "string", c("QuotaGranted", "reason"), 1),
        ("City", "string", r".metadata.labels['compute\.datumapis\.com/city-code']", 1),
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_printer_columns_are_those_of_the_specification_in_order(kind: str) -> None:
    columns = [obj(column) for column in items(version_of(kind)["additionalPrinterColumns"])]
    assert [
        (each["name"], each["type"], each["jsonPath"], each.get("priority", 0)) for each in columns
    ] == COLUMNS[kind]


# --- defaulted status (7) -------------------------------------------------------------------------


def unknown(condition_type: str, reason: str, message: str) -> JsonObject:
    return {
        "type": condition_type,
        "status": "Unknown",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }


def pending(*types: str) -> list[JsonValue]:
    return [unknown(each, "Pending", "Waiting for controller") for each in types]


ZEROS: JsonObject = dict.fromkeys((*COUNTERS, "observedGeneration"), 0)
DEFAULT_STATUS: dict[str, JsonObject] = {
    "Instance": {
        "conditions": [
            *pending("Programmed", "Available", "Ready"),
            unknown("QuotaGranted", "PendingEvaluation", "Waiting for quota evaluation"),
        ]
    },
    "WorkloadDeployment": {"conditions": pending("Available", "ReplicasReady", "Ready"), **ZEROS},
    "Workload": {"conditions": pending("Available", "Ready"), "deployments": 0, **ZEROS},
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_before_the_first_write_has_the_status_of_the_specification(
    kind: str,
) -> None:
    assert node(kind, "status")["default"] == DEFAULT_STATUS[kind]


# --- rules (12.6) ---------------------------------------------------------------------------------


ALLOWED_IN_RULES = {"rule", "message", "reason", "fieldPath"}


def test_rules_are_entries_with_a_message_and_a_reason_and_compare_with_no_stored_object() -> None:
    stated = [
        obj(rule)
        for _, schema in NODES["Workload"]
        for rule in items(schema.get("x-kubernetes-validations", []))
    ]
    assert len(stated) == 13
    for rule in stated:
        assert {"rule", "message", "reason"} <= set(rule) <= ALLOWED_IN_RULES
        # A copy that another plane makes is no update of what a rule would compare it with.
        assert "oldSelf" not in str(rule["rule"])


def test_a_rule_for_what_is_no_field_is_refused() -> None:
    stray = {"spec.template.other": (SchemaRule("true", "never"),)}
    with pytest.raises(UnstructuralSchemaError, match="'other'"):
        with_rules(schema_of("Workload"), stray)


# --- what cannot be a CRD is refused --------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": []},
        {"type": "integer", "exclusiveMinimum": 0},
        {"type": "array", "items": {"prefixItems": []}},
        {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        {"type": "object", "properties": {"a": "x"}},
    ],
)
def test_what_pydantic_may_say_and_a_crd_cannot_is_refused(schema: JsonObject) -> None:
    with pytest.raises(UnstructuralSchemaError):
        to_structural(schema, {})


def test_hints_of_ours_never_reach_a_crd() -> None:
    text = json.dumps(derive_crds())
    for hint in (scalars.REQUIRED_HINT, scalars.DEFAULT_HINT, "$ref", "nullable", '"title"'):
        assert hint not in text
