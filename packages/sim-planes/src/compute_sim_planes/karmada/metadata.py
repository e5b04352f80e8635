"""Reading and changing the metadata of objects as Karmada does. Pure: a change is a copy."""

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


def name_of(found: JsonObject) -> str:
    return string_at(found, "metadata", "name")


def namespace_of(found: JsonObject) -> str:
    return string_at(found, "metadata", "namespace")


def uid_of(found: JsonObject) -> str:
    return string_at(found, "metadata", "uid")


def version_of(found: JsonObject) -> str:
    return string_at(found, "metadata", "resourceVersion")


def generation_of(found: JsonObject) -> int:
    return integer_at(found, "metadata", "generation") or 0


def labels_of(found: JsonObject) -> dict[str, str]:
    return string_map_at(found, "metadata", "labels")


def annotations_of(found: JsonObject) -> dict[str, str]:
    return string_map_at(found, "metadata", "annotations")


def finalizers_of(found: JsonObject) -> list[str]:
    return strings_at(found, "metadata", "finalizers")


def is_going(found: JsonObject) -> bool:
    return bool(string_at(found, "metadata", "deletionTimestamp"))


def with_metadata(
    found: JsonObject,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Iterable[str] = (),
) -> JsonObject:
    """A copy that has these, and all it had before."""
    wanted = copy_object(found)
    metadata = ensure_object(wanted, "metadata")
    if labels:
        ensure_object(metadata, "labels").update(labels)
    if annotations:
        ensure_object(metadata, "annotations").update(annotations)
    before = finalizers_of(found)
    more = [one for one in finalizers if one not in before]
    if more:
        metadata["finalizers"] = list[JsonValue]([*before, *more])
    return wanted


def without_metadata(
    found: JsonObject, *, labels: Iterable[str] = (), annotations: Iterable[str] = ()
) -> JsonObject:
    """A copy that has none of these."""
    wanted = copy_object(found)
    metadata = ensure_object(wanted, "metadata")
    for field, names in (("labels", labels), ("annotations", annotations)):
        entries = ensure_object(metadata, field)
        for name in names:
            entries.pop(name, None)
        if not entries:
            metadata.pop(field)
    return wanted


def without_finalizer(found: JsonObject, finalizer: str) -> JsonObject:
    wanted = copy_object(found)
    kept = [one for one in finalizers_of(found) if one != finalizer]
    ensure_object(wanted, "metadata")["finalizers"] = list[JsonValue](kept)
    return wanted


def is_respecified(before: JsonObject, after: JsonObject) -> bool:
    """Whether anything but status and bookkeeping changed."""
    return _specified(before) != _specified(after)


def _specified(found: JsonObject) -> JsonObject:
    kept = {name: value for name, value in found.items() if name != "status"}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        ignored = {"managedFields", "resourceVersion"}
        kept["metadata"] = {k: v for k, v in metadata.items() if k not in ignored}
    return kept


def owner_reference(found: JsonObject) -> JsonObject:
    """As the controlling owner."""
    return {
        "apiVersion": string_at(found, "apiVersion"),
        "kind": string_at(found, "kind"),
        "name": name_of(found),
        "uid": uid_of(found),
        "controller": True,
        "blockOwnerDeletion": True,
    }
