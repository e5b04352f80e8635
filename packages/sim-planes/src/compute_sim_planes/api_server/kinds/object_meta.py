"""Validation of object metadata, with the messages of a real API server.

Operators keep identity in labels and annotations, and a real server refuses many values that a
lenient fake would accept. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from compute_sim_planes.api_server.kinds import object_names
from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.api_server.schema import field_problems as problems
from compute_sim_planes.api_server.schema.field_problems import FieldProblem
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    object_at,
    objects_at,
    string_at,
    strings_at,
)

# In bytes, over all keys and values of an object's annotations.
ANNOTATIONS_LIMIT: Final = 256 * 1024
_RBAC: Final = "rbac.authorization.k8s.io"
_IMMUTABLE: Final = ("name", "namespace", "uid")
# Only a delete sets these; once set, an update cannot change them, like the creation timestamp.
_SET_BY_DELETE: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
_GARBAGE_COLLECTION: Final = frozenset({"orphan", "foregroundDeletion"})

NameRule = Callable[[str], list[str]]


def meta_problems(kind: Kind, desired: JsonObject) -> list[FieldProblem]:
    """All problems in the metadata of a new object."""
    metadata = object_at(desired, "metadata")
    return [
        *_name_problems(kind, metadata),
        *_namespace_problems(kind, metadata),
        *_content_problems(metadata),
    ]


def meta_update_problems(kind: Kind, before: JsonObject, desired: JsonObject) -> list[FieldProblem]:
    """All problems in a change of stored metadata."""
    metadata, stored = object_at(desired, "metadata"), object_at(before, "metadata")
    return [
        *_finalizers_while_deleting(stored, metadata),
        *_version_problems(kind, metadata),
        *_immutable_problems(stored, metadata),
        *_content_problems(metadata),
    ]


def name_rule(kind: Kind) -> NameRule:
    """The rule for names of a kind's objects."""
    if kind.group == _RBAC:
        return object_names.path_segment_problems
    if kind.group == "" and kind.kind == "Namespace":
        return object_names.dns_label_problems
    if kind.group == "" and kind.kind == "Service":
        return object_names.dns_1035_label_problems
    return object_names.dns_subdomain_problems


def _name_problems(kind: Kind, metadata: JsonObject) -> Iterator[FieldProblem]:
    name, prefix = string_at(metadata, "name"), string_at(metadata, "generateName")
    rule = name_rule(kind)
    if prefix:
        # The random suffix makes a trailing dash of the prefix valid.
        checked = prefix[:-1] + "a" if prefix.endswith("-") else prefix
        for detail in rule(checked):
            yield problems.invalid("metadata.generateName", prefix, detail)
    if not name:
        yield problems.required("metadata.name", "name or generateName is required")
        return
    for detail in rule(name):
        yield problems.invalid("metadata.name", name, detail)


def _namespace_problems(kind: Kind, metadata: JsonObject) -> Iterator[FieldProblem]:
    namespace = string_at(metadata, "namespace")
    if not kind.namespaced:
        if namespace:
            yield problems.forbidden("metadata.namespace", "not allowed on this type")
        return
    if not namespace:
        yield problems.required("metadata.namespace")
        return
    for detail in object_names.dns_label_problems(namespace):
        yield problems.invalid("metadata.namespace", namespace, detail)


def _content_problems(metadata: JsonObject) -> Iterator[FieldProblem]:
    yield from label_problems(object_at(metadata, "labels"), "metadata.labels")
    yield from annotation_problems(object_at(metadata, "annotations"), "metadata.annotations")
    yield from _owner_problems(objects_at(metadata, "ownerReferences"))
    yield from _finalizer_problems(strings_at(metadata, "finalizers"))


def label_problems(labels: JsonObject, path: str) -> Iterator[FieldProblem]:
    """Problems of a map of labels, in metadata or elsewhere."""
    for key, value in labels.items():
        for detail in object_names.qualified_name_problems(key):
            yield problems.invalid(path, key, detail)
        for detail in object_names.label_value_problems(value if isinstance(value, str) else ""):
            yield problems.invalid(path, value, detail)


def annotation_problems(annotations: JsonObject, path: str) -> Iterator[FieldProblem]:
    """Problems of a map of annotations: keys as for labels but in any case, values by size."""
    size = 0
    for key, value in annotations.items():
        for detail in object_names.qualified_name_problems(key.lower()):
            yield problems.invalid(path, key, detail)
        size += len(key.encode()) + len(str(value).encode())
    if size > ANNOTATIONS_LIMIT:
        yield problems.too_long(path, ANNOTATIONS_LIMIT)


def _owner_problems(references: list[JsonObject]) -> Iterator[FieldProblem]:
    path = "metadata.ownerReferences"
    controllers: list[str] = []
    for reference in references:
        if not string_at(reference, "apiVersion"):
            yield problems.invalid(f"{path}.apiVersion", "", "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not string_at(reference, field):
                yield problems.invalid(f"{path}.{field}", "", "must not be empty")
        if reference.get("controller") is True:
            controllers.append(string_at(reference, "name"))
    if len(controllers) > 1:
        detail = (
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {controllers[0]} and {controllers[1]}'
        )
        yield problems.invalid(path, list[JsonValue](references), detail)


def _finalizer_problems(finalizers: list[str]) -> Iterator[FieldProblem]:
    for finalizer in finalizers:
        for detail in object_names.qualified_name_problems(finalizer):
            yield problems.invalid("metadata.finalizers", finalizer, detail)
    if set(finalizers) >= _GARBAGE_COLLECTION:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield problems.invalid("metadata.finalizers", list[JsonValue](finalizers), detail)


def _finalizers_while_deleting(existing: JsonObject, desired: JsonObject) -> Iterator[FieldProblem]:
    if not existing.get("deletionTimestamp"):
        return
    held = strings_at(existing, "finalizers")
    added = [name for name in strings_at(desired, "finalizers") if name not in held]
    if added:
        names = ", ".join(f'"{name}"' for name in sorted(added))
        detail = (
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{names}}}"
        )
        yield problems.forbidden("metadata.finalizers", detail)


def _version_problems(kind: Kind, desired: JsonObject) -> Iterator[FieldProblem]:
    if not kind.unconditional_update and not string_at(desired, "resourceVersion"):
        yield problems.invalid("metadata.resourceVersion", "", "must be specified for an update")


def _immutable_problems(existing: JsonObject, desired: JsonObject) -> Iterator[FieldProblem]:
    for field in _IMMUTABLE:
        # An omitted field keeps its value; only a different value is an attempt to change it.
        value = desired.get(field)
        if value is not None and value != existing.get(field):
            yield problems.invalid(f"metadata.{field}", value, "field is immutable")
    for field in _SET_BY_DELETE:
        if field in desired and field not in existing:
            yield problems.invalid(f"metadata.{field}", desired[field], "field is immutable")
