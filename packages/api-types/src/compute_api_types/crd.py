"""The three CRDs as plain documents, derived from the models (`docs/spec/api.md` 16).

An API server takes a structural schema: fully inlined, without the nulls, titles and references of
pydantic's JSON schemas. This module rewrites those and adds what only a CRD has: names, printer
columns, the default status. It writes no file: YAML is for `tools/crds.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_api_types.errors import ApiTypesError
from compute_api_types.labels import PARENT_CONTEXTS
from compute_api_types.meta import GROUP, VERSION, Resource
from compute_api_types.model import Model
from compute_api_types.scalars import DEFAULT_HINT, REQUIRED_HINT
from compute_api_types.v1alpha.instance import Instance, InstanceStatus
from compute_api_types.v1alpha.workload import Workload, WorkloadStatus
from compute_api_types.v1alpha.workload_deployment import (
    WorkloadDeployment,
    WorkloadDeploymentStatus,
)
from compute_api_types.validation.schema_rules import WORKLOAD_RULES, SchemaRule
from compute_api_types.wire import JsonObject, JsonValue

Schema: TypeAlias = Mapping[str, JsonValue]

# What a structural schema may carry from pydantic's, besides `x-kubernetes-*`. A closed list: a
# keyword of a later pydantic must not reach a CRD unnoticed.
_KEPT: Final = frozenset(
    {
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
        "type",
    }
)
_HANDLED: Final = frozenset(
    {"$ref", "additionalProperties", "anyOf", "const", "properties", "required"}
)
# Titles repeat the field's name; pydantic's defaults are for Python, a CRD's come from the hints.
_DROPPED: Final = frozenset({"$defs", "default", "title", REQUIRED_HINT, DEFAULT_HINT})
_EXTENSION: Final = "x-kubernetes-"
_RULES_KEYWORD: Final = "x-kubernetes-validations"


class UnstructuralSchemaError(ApiTypesError):
    """A model uses what a CRD cannot express: our bug, raised when CRDs are generated."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    priority: int = 0
    type: str = "string"

    def to_document(self) -> JsonObject:
        """The column as a CRD lists it."""
        document: JsonObject = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return document | ({"priority": self.priority} if self.priority else {})


def _condition(condition_type: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{condition_type}")].{field}'


_AGE: Final = Column("Age", ".metadata.creationTimestamp", type="date")
_AVAILABLE: Final = (
    Column("Available", _condition("Available", "status")),
    Column("Reason", _condition("Available", "reason")),
)
_REPLICAS: Final = (
    Column("Replicas", ".status.replicas"),
    Column("Ready", ".status.readyReplicas"),
    Column("Desired", ".status.desiredReplicas"),
    Column("Up-to-date", ".status.updatedReplicas"),
)
_MESSAGE: Final = Column("Message", _condition("Ready", "message"), priority=1)

COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Workload": (
        _AGE,
        *_AVAILABLE,
        Column("Deployments", ".status.deployments"),
        *_REPLICAS,
        _MESSAGE,
        # A server prints the first result of a path only: these are the cities of one placement.
        Column("Cities", ".spec.placements[*].cityCodes"),
    ),
    "WorkloadDeployment": (
        _AGE,
        *_AVAILABLE,
        *_REPLICAS,
        Column("Location Namespace", ".status.location.namespace", priority=1),
        Column("Location Name", ".status.location.name", priority=1),
        Column("City", ".spec.cityCode"),
        _MESSAGE,
    ),
    "Instance": (
        _AGE,
        Column("Ready", _condition("Ready", "status")),
        Column("Reason", _condition("Ready", "reason")),
        Column("Network IP", ".status.networkInterfaces[0].assignments.networkIP"),
        Column("External IP", ".status.networkInterfaces[0].assignments.externalIP"),
        _MESSAGE,
        Column("Quota", _condition("QuotaGranted", "reason"), priority=1),
        Column("City", r".metadata.labels['compute\.datumapis\.com/city-code']", priority=1),
    ),
}
"""Printer columns per kind, in order (api.md 6)."""

CATEGORY: Final = "compute"
"""`kubectl get compute` lists all three kinds."""

SHORT_NAMES: Final[Mapping[str, str]] = {
    "Workload": "cwl",
    "WorkloadDeployment": "cwd",
    "Instance": "cinst",
}
"""One per kind; none is a name of a kind in Kubernetes, Karmada or Milo (api.md 1)."""


RULES: Final[Mapping[str, Mapping[str, tuple[SchemaRule, ...]]]] = {"Workload": WORKLOAD_RULES}
"""CEL rules per kind, by path; a kind without an entry has none."""


SUBRESOURCES: Final[Mapping[str, JsonObject]] = {
    "WorkloadDeployment": {
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    }
}
"""Subresources beside `status`: an autoscaler of a cell writes `scale` (autoscaling.md 1)."""


def derive_crds() -> tuple[JsonObject, ...]:
    """The documents of the three CRDs, in the order of the specification."""
    return (
        _document(Workload, Workload.RESOURCE, WorkloadStatus.defaulted()),
        _document(
            WorkloadDeployment, WorkloadDeployment.RESOURCE, WorkloadDeploymentStatus.defaulted()
        ),
        _document(Instance, Instance.RESOURCE, InstanceStatus.defaulted()),
    )


def _document(model: type[Model], resource: Resource, default_status: Model) -> JsonObject:
    kind = resource.kind
    names: JsonObject = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
        "shortNames": [SHORT_NAMES[kind]],
        "categories": [CATEGORY],
    }
    version: JsonObject = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}, **SUBRESOURCES.get(kind, {})},
        "additionalPrinterColumns": [column.to_document() for column in COLUMNS[kind]],
        "schema": {
            "openAPIV3Schema": with_rules(_root(model, default_status), RULES.get(kind, {}))
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{GROUP}",
            "annotations": {PARENT_CONTEXTS: "Project"},
        },
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


_ROOT_FIELDS: Final[Mapping[str, Schema]] = {
    "apiVersion": {"type": "string", "description": "The version of the API of this object."},
    "kind": {"type": "string", "description": "The kind of this object."},
    # Nothing else: the API server has a schema of metadata, and refuses another one.
    "metadata": {"type": "object"},
}


def _root(model: type[Model], default_status: Model) -> JsonObject:
    schema: Schema = model.model_json_schema(by_alias=True)
    root = to_structural(schema, _mapping(schema.get("$defs")))
    properties = _mapping(root["properties"])
    status: JsonObject = {**_mapping(properties["status"]), "default": default_status.to_document()}
    root["properties"] = {
        **{name: dict(field) for name, field in _ROOT_FIELDS.items()},
        "spec": properties["spec"],
        "status": status,
    }
    # Pydantic also requires metadata, which an API server does by itself.
    required = [name for name in _texts(root.get("required")) if name == "spec"]
    return _with_required(root, required)


def with_rules(schema: JsonObject, rules: Mapping[str, tuple[SchemaRule, ...]]) -> JsonObject:
    """The schema with each rule at the field of its path: `spec.placements[].cityCodes`."""
    for path, added in rules.items():
        schema = _with_rules_at(schema, path.replace("[]", ".[]").split("."), added)
    return schema


def _with_rules_at(
    schema: JsonObject, steps: list[str], added: tuple[SchemaRule, ...]
) -> JsonObject:
    if not steps:
        return {**schema, _RULES_KEYWORD: [rule.to_document() for rule in added]}
    step, *below = steps
    if step == "[]":
        return {**schema, "items": _with_rules_at({**_mapping(schema["items"])}, below, added)}
    properties = _mapping(schema["properties"])
    if step not in properties:
        raise UnstructuralSchemaError(f"a rule for {step!r}, which is no field")
    inner = _with_rules_at({**_mapping(properties[step])}, below, added)
    return {**schema, "properties": {**properties, step: inner}}


def to_structural(schema: Schema, definitions: Schema) -> JsonObject:
    """One schema as an API server takes it: references inlined, only keywords it knows."""
    schema = _without_null(_resolved(schema, definitions))
    structural: JsonObject = {key: value for key, value in schema.items() if _is_kept(key)}
    if "anyOf" in schema:
        structural["anyOf"] = schema["anyOf"]
    if "const" in schema:
        structural["enum"] = [schema["const"]]
    if DEFAULT_HINT in schema:
        structural["default"] = schema[DEFAULT_HINT]
    if "items" in schema:
        structural["items"] = to_structural(_mapping(schema["items"]), definitions)
    if "properties" in schema:
        return _with_properties(structural, schema, definitions)
    if isinstance(schema.get("additionalProperties"), dict):
        values = _mapping(schema["additionalProperties"])
        structural["additionalProperties"] = to_structural(values, definitions)
    return structural


def _with_properties(structural: JsonObject, schema: Schema, definitions: Schema) -> JsonObject:
    required = _texts(schema.get("required"))
    properties: JsonObject = {}
    for name, field in _mapping(schema["properties"]).items():
        resolved = _without_null(_resolved(_mapping(field), definitions))
        if resolved.get(REQUIRED_HINT) and name not in required:
            required.append(name)
        properties[name] = to_structural(resolved, definitions)
    structural["properties"] = properties
    return _with_required(structural, required)


def _with_required(schema: JsonObject, required: list[str]) -> JsonObject:
    # An empty list would be noise; so is a list that changes with the order of fields.
    kept: JsonObject = {key: value for key, value in schema.items() if key != "required"}
    return {**kept, "required": [*sorted(required)]} if required else kept


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """The schema a reference names; keywords beside the reference win over those of its target."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    target = _mapping(definitions[reference.rpartition("/")[2]])
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return _resolved({**target, **beside}, definitions)


def _without_null(schema: Schema) -> Schema:
    """`X or null` becomes X: optional means absent, and never `nullable` (api.md 14, trap 7)."""
    options = schema.get("anyOf")
    if not isinstance(options, list) or {"type": "null"} not in options:
        return schema
    given = [option for option in options if option != {"type": "null"}]
    if len(given) != 1:
        raise UnstructuralSchemaError(f"a choice between several schemas: {given}")
    beside = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**_mapping(given[0]), **beside}


def _is_kept(key: str) -> bool:
    if key in _KEPT or key.startswith(_EXTENSION):
        return True
    if key in _HANDLED or key in _DROPPED:
        return False
    raise UnstructuralSchemaError(f"{key!r} is no part of a structural schema")


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(value, dict):
        raise UnstructuralSchemaError(f"an object was expected: {value!r}")
    return value


def _texts(value: JsonValue) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
