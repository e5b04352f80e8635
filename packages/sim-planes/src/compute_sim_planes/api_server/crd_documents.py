"""A CustomResourceDefinition as a document: what is wrong with it, what the server adds, which
kinds it makes.

Pure reading and writing of one object. When a definition takes effect is the CRD controller's
matter.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_sim_planes.api_server import field_problems
from compute_sim_planes.api_server.field_problems import FieldProblem
from compute_sim_planes.api_server.kinds import GroupResource, Kind, PrinterColumn
from compute_sim_planes.api_server.schema import compile_schema, structural_problems
from compute_sim_planes.api_server.sources import render_time
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

CRDS: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_SCOPES: Final = ["Cluster", "Namespaced"]


# In the order in which a real server lists them for such kinds.
VERBS: Final = (
    "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch",
)  # fmt: skip


def fill(wanted: JsonObject) -> None:
    """Defaults of a definition."""
    spec = ensure_object(wanted, "spec")
    names = ensure_object(spec, "names")
    kind = string_at(names, "kind")
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List")
    spec.setdefault("conversion", {"strategy": "None"})


def begin(wanted: JsonObject) -> None:
    """The status of a definition that has not taken effect yet."""
    names: JsonObject = {"plural": "", "kind": ""}
    stored = list[JsonValue](_storage_versions(wanted))
    wanted["status"] = {"conditions": None, "acceptedNames": names, "storedVersions": stored}


def _storage_versions(found: JsonObject) -> list[str]:
    versions = objects_at(found, "spec", "versions")
    return [string_at(version, "name") for version in versions if version.get("storage") is True]


def prepare_delete(found: JsonObject, now: datetime) -> None:
    """Its objects go first: hold the definition until they have."""
    metadata = ensure_object(found, "metadata")
    if CLEANUP not in strings_at(metadata, "finalizers"):
        metadata["finalizers"] = [*array_at(metadata, "finalizers"), CLEANUP]
    set_condition(
        found,
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


def establish(found: JsonObject, now: datetime) -> None:
    """Say in the status that the names are taken and the kind is served."""
    status = ensure_object(found, "status")
    status["acceptedNames"] = object_at(found, "spec", "names")
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
        set_condition(found, now, dict[str, JsonValue](condition))
    stored = strings_at(status, "storedVersions")
    added = [name for name in _storage_versions(found) if name not in stored]
    status["storedVersions"] = list[JsonValue]([*stored, *added])


def is_established(found: JsonObject) -> bool:
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in objects_at(found, "status", "conditions")
    )


def set_condition(found: JsonObject, now: datetime, wanted: JsonObject) -> None:
    status = ensure_object(found, "status")
    kept = [c for c in objects_at(status, "conditions") if c.get("type") != wanted["type"]]
    same = [c for c in objects_at(status, "conditions") if c.get("type") == wanted["type"]]
    moved = not same or same[0].get("status") != wanted["status"]
    since = render_time(now) if moved else string_at(same[0], "lastTransitionTime")
    status["conditions"] = list[JsonValue]([*kept, {**wanted, "lastTransitionTime": since}])


def problems(before: JsonObject | None, wanted: JsonObject) -> list[FieldProblem]:
    """Why the definition cannot be taken."""
    found = [*_name_problems(wanted), *_version_problems(wanted)]
    if before is not None and is_established(before):
        found += _immutable_problems(before, wanted)
    return found


def _name_problems(wanted: JsonObject) -> list[FieldProblem]:
    spec, name = object_at(wanted, "spec"), string_at(wanted, "metadata", "name")
    found: list[FieldProblem] = []
    if not string_at(spec, "group"):
        found.append(field_problems.required("spec.group"))
    if string_at(spec, "scope") not in _SCOPES:
        found.append(field_problems.not_supported("spec.scope", spec.get("scope", ""), _SCOPES))
    found += [
        field_problems.required(f"spec.names.{needed}")
        for needed in ("plural", "kind")
        if not string_at(spec, "names", needed)
    ]
    expected = f"{string_at(spec, 'names', 'plural')}.{string_at(spec, 'group')}"
    if not found and name != expected:
        detail = 'must be spec.names.plural+"."+spec.group'
        found.append(field_problems.invalid("metadata.name", name, detail))
    return found


def _version_problems(wanted: JsonObject) -> list[FieldProblem]:
    versions = objects_at(wanted, "spec", "versions")
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
        # A schema that all versions share is one of the definition as a whole, to a real server.
        return structural_problems(documents[0], "spec.validation.openAPIV3Schema")
    return [
        problem
        for index, document in enumerate(documents)
        for problem in structural_problems(document, _schema_path(index))
    ]


def _schema_path(index: int) -> str:
    return f"spec.versions[{index}].schema.openAPIV3Schema"


def _immutable_problems(before: JsonObject, wanted: JsonObject) -> list[FieldProblem]:
    paths = (
        ("spec", "group"),
        ("spec", "scope"),
        ("spec", "names", "kind"),
        ("spec", "names", "plural"),
    )
    return [
        field_problems.invalid(".".join(path), string_at(wanted, *path), "field is immutable")
        for path in paths
        if string_at(before, *path) != string_at(wanted, *path)
    ]


def resource_of(found: JsonObject) -> GroupResource:
    return GroupResource(
        string_at(found, "spec", "group"), string_at(found, "spec", "names", "plural")
    )


def derive_kinds(found: JsonObject) -> tuple[list[Kind], Kind | None]:
    """The served versions of a definition, and the one objects are stored in."""
    served: list[Kind] = []
    storage: Kind | None = None
    for version in objects_at(found, "spec", "versions"):
        kind = _derive_kind(found, version)
        if version.get("served") is True:
            served.append(kind)
        if version.get("storage") is True:
            storage = kind
    return served, storage


def _derive_kind(found: JsonObject, version: JsonObject) -> Kind:
    spec = object_at(found, "spec")
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
        schema=schema,
        default_status=schema.default({}).get("status") if has_status else None,
        schema_document=document,
        columns=_derive_columns(version),
        selectable_fields=tuple(
            string_at(selectable, "jsonPath").removeprefix(".")
            for selectable in objects_at(version, "selectableFields")
        ),
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
