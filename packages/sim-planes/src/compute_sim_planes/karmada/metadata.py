"""Readers and writers of object metadata for Karmada's controllers. Pure: writers return a copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    ensure_object,
    integer_at,
    string_at,
    string_map_at,
    strings_at,
)


def name_of(document: JsonObject) -> str:
    return string_at(document, "metadata", "name")


def namespace_of(document: JsonObject) -> str:
    return string_at(document, "metadata", "namespace")


def uid_of(document: JsonObject) -> str:
    return string_at(document, "metadata", "uid")


def version_of(document: JsonObject) -> str:
    return string_at(document, "metadata", "resourceVersion")


def generation_of(document: JsonObject) -> int:
    return integer_at(document, "metadata", "generation") or 0


def labels_of(document: JsonObject) -> dict[str, str]:
    return string_map_at(document, "metadata", "labels")


def annotations_of(document: JsonObject) -> dict[str, str]:
    return string_map_at(document, "metadata", "annotations")


def finalizers_of(document: JsonObject) -> list[str]:
    return strings_at(document, "metadata", "finalizers")


def is_terminating(document: JsonObject) -> bool:
    return bool(string_at(document, "metadata", "deletionTimestamp"))


def with_metadata(
    document: JsonObject,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Iterable[str] = (),
) -> JsonObject:
    """A copy with these entries added."""
    desired = copy_object(document)
    metadata = ensure_object(desired, "metadata")
    if labels:
        ensure_object(metadata, "labels").update(labels)
    if annotations:
        ensure_object(metadata, "annotations").update(annotations)
    before = finalizers_of(document)
    more = [one for one in finalizers if one not in before]
    if more:
        metadata["finalizers"] = list[JsonValue]([*before, *more])
    return desired


def without_metadata(
    document: JsonObject, *, labels: Iterable[str] = (), annotations: Iterable[str] = ()
) -> JsonObject:
    """A copy without these entries."""
    desired = copy_object(document)
    metadata = ensure_object(desired, "metadata")
    for field, names in (("labels", labels), ("annotations", annotations)):
        entries = ensure_object(metadata, field)
        for name in names:
            entries.pop(name, None)
        if not entries:
            metadata.pop(field)
    return desired


def without_finalizer(document: JsonObject, finalizer: str) -> JsonObject:
    desired = copy_object(document)
    kept = [one for one in finalizers_of(document) if one != finalizer]
    ensure_object(desired, "metadata")["finalizers"] = list[JsonValue](kept)
    return desired


def is_desired_state_changed(before: JsonObject, after: JsonObject) -> bool:
    """Whether anything except status and bookkeeping changed."""
    return _desired_state(before) != _desired_state(after)


def _desired_state(document: JsonObject) -> JsonObject:
    kept = {name: value for name, value in document.items() if name != "status"}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        ignored = {"managedFields", "resourceVersion"}
        kept["metadata"] = {k: v for k, v in metadata.items() if k not in ignored}
    return kept


def owner_reference(document: JsonObject) -> JsonObject:
    """A reference to the object as controlling owner."""
    return {
        "apiVersion": string_at(document, "apiVersion"),
        "kind": string_at(document, "kind"),
        "name": name_of(document),
        "uid": uid_of(document),
        "controller": True,
        "blockOwnerDeletion": True,
    }
