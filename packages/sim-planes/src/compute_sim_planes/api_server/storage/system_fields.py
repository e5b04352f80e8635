"""Rules for metadata that the server sets: identity, times, generation, finalizers.

What a create sets, what an update may not change, when the generation increases, and what a delete
does while finalizers remain. The functions change the dicts they are given.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.api_server.storage.records import encode
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    ensure_object,
    integer_at,
    object_at,
    string_at,
    strings_at,
)
from compute_sim_planes.time.sources import Identities, render_time

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
# Set at creation or deletion; an update cannot change them.
_PRESERVED: Final = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid")
# kube-apiserver leaves this many of a generated name's 63 characters for the prefix.
_LONGEST_GENERATED_BASE: Final = 58


def fill_new(kind: Kind, desired: JsonObject, now: datetime, identities: Identities) -> None:
    """Set UID, creation time and first generation of a new object; values in the request are
    dropped.
    """
    metadata = ensure_object(desired, "metadata")
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        metadata.pop(name, None)
    metadata["uid"] = identities.uid()
    metadata["creationTimestamp"] = render_time(now)
    if kind.tracks_generation:
        metadata["generation"] = 1
    if kind.has_status:
        desired.pop("status", None)


def fill_generated_name(metadata: JsonObject, identities: Identities) -> None:
    base = string_at(metadata, "generateName")
    if base and not string_at(metadata, "name"):
        metadata["name"] = base[:_LONGEST_GENERATED_BASE] + identities.suffix()


def preserve_system_fields(
    kind: Kind, existing: JsonObject, desired: JsonObject, *, status: bool = True
) -> None:
    """Restore fields that an update may not change, and increase the generation if the spec
    changed.
    """
    before, after = object_at(existing, "metadata"), ensure_object(desired, "metadata")
    for name in _PRESERVED:
        _copy_field(before, after, name)
    after.pop("selfLink", None)
    _copy_field(before, after, "generation")
    if kind.has_status and status:
        _copy_field(existing, desired, "status")
    if kind.tracks_generation and _spec_of(kind, existing) != _spec_of(kind, desired):
        after["generation"] = (integer_at(before, "generation") or 0) + 1


def take_status(existing: JsonObject, desired: JsonObject) -> JsonObject:
    """The result of a status update: the existing object with the new status and managedFields."""
    answer = dict(existing)
    _copy_field(desired, answer, "status")
    answer["metadata"] = metadata = dict(object_at(existing, "metadata"))
    _copy_field(object_at(desired, "metadata"), metadata, "managedFields")
    return answer


def _spec_of(kind: Kind, existing: JsonObject) -> bytes:
    """All fields except metadata and, where it is a subresource, status; as bytes, because in
    Python 1 == True.
    """
    hidden = {"metadata", "status"} if kind.has_status else {"metadata"}
    return encode({name: value for name, value in existing.items() if name not in hidden})


def _copy_field(source: JsonObject, target: JsonObject, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def mark_deleted(existing: JsonObject, now: datetime, grace: timedelta = timedelta()) -> None:
    """Set the deletion timestamp, once, or earlier by a shorter grace period; the generation
    increases with it, so that controllers notice.
    """
    metadata = ensure_object(existing, "metadata")
    generation = integer_at(metadata, "generation") or 0
    if "deletionGracePeriodSeconds" not in metadata and generation > 0:
        metadata["generation"] = generation + 1
    seconds = int(grace.total_seconds())
    is_shorter = seconds and metadata.get("deletionGracePeriodSeconds") != seconds
    if "deletionTimestamp" not in metadata or is_shorter:
        metadata["deletionTimestamp"] = render_time(now + grace)
    metadata["deletionGracePeriodSeconds"] = seconds


def set_deletion_finalizers(existing: JsonObject, propagation: str | None) -> None:
    """Set the garbage collector's finalizer for a propagation policy; None leaves it unchanged."""
    if propagation is None:
        return
    metadata = ensure_object(existing, "metadata")
    finalizers = [
        name for name in strings_at(metadata, "finalizers") if name not in {FOREGROUND, ORPHAN}
    ]
    finalizer = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(propagation)
    set_finalizers(metadata, [*finalizers, finalizer] if finalizer else finalizers)


def set_finalizers(metadata: JsonObject, finalizers: list[str]) -> None:
    if finalizers:
        metadata["finalizers"] = list[JsonValue](finalizers)
    else:
        metadata.pop("finalizers", None)


def can_be_removed(existing: JsonObject) -> bool:
    """Whether a terminating object has no finalizers left."""
    metadata = object_at(existing, "metadata")
    return "deletionTimestamp" in metadata and not strings_at(metadata, "finalizers")
