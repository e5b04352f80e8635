"""CustomResourceDefinition documents: validation, defaults, status, and the kinds they define.

Pure functions over one object. The CRD controller decides when a definition takes effect.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind, PrinterColumn, ScalePaths
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.schema.compiled import compile_schema, structural_problems
from compute_sim_planes.api_server.schema.field_problems import FieldProblem
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    ensure_object,
    integer_at,
    object_at,
    objects_at,
    string_at,
    strings_at,
)
from compute_sim_planes.time.sources import render_time

CRDS: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_SCOPES: Final = ["Cluster", "Namespaced"]


# In the order in which a real server lists them for custom kinds.
VERBS: Final = (
    "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch",
)  # fmt: skip


def fill(desired: JsonObject) -> None:
    """Set the defaults of a definition."""
    spec = ensure_object(desired, "spec")
    names = ensure_object(spec, "names")
    kind = string_at(names, "kind")
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List")
    spec.setdefault("conversion", {"strategy": "None"})


def begin(desired: JsonObject) -> None:
    """Set the status of a definition that has not taken effect yet."""
    names: JsonObject = {"plural": "", "kind": ""}
    stored = list[JsonValue](_storage_versions(desired))
    desired["status"] = {"conditions": None, "acceptedNames": names, "storedVersions": stored}


def _storage_versions(document: JsonObject) -> list[str]:
    versions = objects_at(document, "spec", "versions")
    return [string_at(version, "name") for version in versions if version.get("storage") is True]


def prepare_delete(document: JsonObject, now: datetime) -> None:
    """Hold the definition with a finalizer until its objects are deleted."""
    metadata = ensure_object(document, "metadata")
    if CLEANUP not in strings_at(metadata, "finalizers"):
        metadata["finalizers"] = [*array_at(metadata, "finalizers"), CLEANUP]
    set_condition(
        document,
        now,
        {
            "type": "Terminating",
            "status": "True",
            "reason": "InstanceDeletionPending",
            "message": (
                "CustomResourceDefinition marked for deletion; "
                "CustomResource deletion will begin soon"
            ),
        },
    )


def establish(document: JsonObject, now: datetime) -> None:
    """Set the status of a definition with accepted names and a served kind."""
    status = ensure_object(document, "status")
    status["acceptedNames"] = object_at(document, "spec", "names")
    for condition in (
        {
            "type": "NamesAccepted",
            "status": "True",
            "reason": "NoConflicts",
            "message": "no conflicts found",
        },
        {
            "type": "Established",
            "status": "True",
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        },
    ):
        set_condition(document, now, dict[str, JsonValue](condition))
    stored = strings_at(status, "storedVersions")
    added = [name for name in _storage_versions(document) if name not in stored]
    status["storedVersions"] = list[JsonValue]([*stored, *added])


def is_established(document: JsonObject) -> bool:
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in objects_at(document, "status", "conditions")
    )


def set_condition(document: JsonObject, now: datetime, condition: JsonObject) -> None:
    status = ensure_object(document, "status")
    kept = [c for c in objects_at(status, "conditions") if c.get("type") != condition["type"]]
    same = [c for c in objects_at(status, "conditions") if c.get("type") == condition["type"]]
    moved = not same or same[0].get("status") != condition["status"]
    since = render_time(now) if moved else string_at(same[0], "lastTransitionTime")
    status["conditions"] = list[JsonValue]([*kept, {**condition, "lastTransitionTime": since}])


def problems(before: JsonObject | None, desired: JsonObject) -> list[FieldProblem]:
    """Why the definition is invalid."""
    collected = [*_name_problems(desired), *_version_problems(desired)]
    if before is not None and is_established(before):
        collected += _immutable_problems(before, desired)
    return collected


def _name_problems(desired: JsonObject) -> list[FieldProblem]:
    spec, name = object_at(desired, "spec"), string_at(desired, "metadata", "name")
    problems: list[FieldProblem] = []
    if not string_at(spec, "group"):
        problems.append(field_problems.required("spec.group"))
    if string_at(spec, "scope") not in _SCOPES:
        problems.append(field_problems.not_supported("spec.scope", spec.get("scope", ""), _SCOPES))
    problems += [
        field_problems.required(f"spec.names.{needed}")
        for needed in ("plural", "kind")
        if not string_at(spec, "names", needed)
    ]
    expected = f"{string_at(spec, 'names', 'plural')}.{string_at(spec, 'group')}"
    if not problems and name != expected:
        detail = 'must be spec.names.plural+"."+spec.group'
        problems.append(field_problems.invalid("metadata.name", name, detail))
    return problems


def _version_problems(desired: JsonObject) -> list[FieldProblem]:
    versions = objects_at(desired, "spec", "versions")
    stored = sum(version.get("storage") is True for version in versions)
    if not versions or stored != 1:
        detail = "must have exactly one version marked as storage version"
        return [field_problems.invalid("spec.versions", list[JsonValue](versions), detail)]
    documents = [object_at(version, "schema", "openAPIV3Schema") for version in versions]
    if not all(documents):
        return [
            field_problems.required(_schema_path(index), "schemas are required")
            for index, document in enumerate(documents)
            if not document
        ]
    if all(document == documents[0] for document in documents):
        # A real server reports a schema that all versions share as one of the whole definition.
        return structural_problems(documents[0], "spec.validation.openAPIV3Schema")
    return [
        problem
        for index, document in enumerate(documents)
        for problem in structural_problems(document, _schema_path(index))
    ]


def _schema_path(index: int) -> str:
    return f"spec.versions[{index}].schema.openAPIV3Schema"


def _immutable_problems(before: JsonObject, desired: JsonObject) -> list[FieldProblem]:
    paths = (
        ("spec", "group"),
        ("spec", "scope"),
        ("spec", "names", "kind"),
        ("spec", "names", "plural"),
    )
    return [
        field_problems.invalid(".".join(path), string_at(desired, *path), "field is immutable")
        for path in paths
        if string_at(before, *path) != string_at(desired, *path)
    ]


def resource_of(document: JsonObject) -> GroupResource:
    return GroupResource(
        string_at(document, "spec", "group"), string_at(document, "spec", "names", "plural")
    )


def derive_kinds(document: JsonObject) -> tuple[list[Kind], Kind | None]:
    """The served versions of a definition, and its storage version."""
    served: list[Kind] = []
    storage: Kind | None = None
    for version in objects_at(document, "spec", "versions"):
        kind = _derive_kind(document, version)
        if version.get("served") is True:
            served.append(kind)
        if version.get("storage") is True:
            storage = kind
    return served, storage


def _derive_kind(definition: JsonObject, version: JsonObject) -> Kind:
    spec = object_at(definition, "spec")
    names = object_at(spec, "names")
    document = object_at(version, "schema", "openAPIV3Schema")
    kind = string_at(names, "kind")
    schema = compile_schema(document)
    has_status = "status" in object_at(version, "subresources")
    return Kind(
        group=string_at(spec, "group"),
        version=string_at(version, "name"),
        kind=kind,
        plural=string_at(names, "plural"),
        singular=string_at(names, "singular") or kind.lower(),
        list_kind=string_at(names, "listKind") or f"{kind}List",
        namespaced=string_at(spec, "scope") == "Namespaced",
        short_names=tuple(strings_at(names, "shortNames")),
        categories=tuple(strings_at(names, "categories")),
        verbs=VERBS,
        has_status=has_status,
        subresources=("scale",) if (scale := _derive_scale(version)) is not None else (),
        scale=scale,
        schema=schema,
        default_status=schema.default({}).get("status") if has_status else None,
        schema_document=document,
        columns=_derive_columns(version),
        selectable_fields=tuple(
            string_at(selectable, "jsonPath").removeprefix(".")
            for selectable in objects_at(version, "selectableFields")
        ),
    )


def _derive_scale(version: JsonObject) -> ScalePaths | None:
    scale = object_at(version, "subresources", "scale")
    if not scale:
        return None

    def path(name: str) -> tuple[str, ...]:
        text = string_at(scale, name).removeprefix(".")
        return tuple(text.split(".")) if text else ()

    return ScalePaths(
        path("specReplicasPath"), path("statusReplicasPath"), path("labelSelectorPath")
    )


def _derive_columns(version: JsonObject) -> tuple[PrinterColumn, ...]:
    columns = tuple(
        PrinterColumn(
            name=string_at(column, "name"),
            type=string_at(column, "type"),
            json_path=string_at(column, "jsonPath"),
            priority=integer_at(column, "priority") or 0,
            description=string_at(column, "description"),
            format=string_at(column, "format"),
        )
        for column in objects_at(version, "additionalPrinterColumns")
    )
    return columns or (PrinterColumn("Age", "date", ".metadata.creationTimestamp"),)
