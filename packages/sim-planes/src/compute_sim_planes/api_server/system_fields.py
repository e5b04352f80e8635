"""The fields of an object that belong to the server, and how they move.

Pure rules over one object: what a create sets, what an update may not touch, when the generation
rises, what it means to be deleted while finalizers remain. Callers own the dicts they hand in; they
are written to.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_sim_planes.api_server.kinds import Kind
from compute_sim_planes.api_server.sources import Identities, render_time
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

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
# Fixed at creation, whatever a later request says.
_KEPT: Final = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid")
# kube-apiserver leaves this many of a generated name's 63 characters for the suffix.
_LONGEST_GENERATED_BASE: Final = 58


def fill_new(kind: Kind, wanted: JsonObject, now: datetime, identities: Identities) -> None:
    """Make `wanted` a new object: identity, time, first generation; whatever of these it brought is
    dropped.
    """
    metadata = ensure_object(wanted, "metadata")
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        metadata.pop(name, None)
    metadata["uid"] = identities.uid()
    metadata["creationTimestamp"] = render_time(now)
    if kind.tracks_generation:
        metadata["generation"] = 1
    if kind.has_status:
        wanted.pop("status", None)


def fill_generated_name(metadata: JsonObject, identities: Identities) -> None:
    base = string_at(metadata, "generateName")
    if base and not string_at(metadata, "name"):
        metadata["name"] = base[:_LONGEST_GENERATED_BASE] + identities.suffix()


def keep_system_fields(
    kind: Kind, found: JsonObject, wanted: JsonObject, *, status: bool = True
) -> None:
    """Put back what an update of the object itself may not change, and raise the generation if it
    must.
    """
    before, after = object_at(found, "metadata"), ensure_object(wanted, "metadata")
    for name in _KEPT:
        _carry(before, after, name)
    after.pop("selfLink", None)
    _carry(before, after, "generation")
    if kind.has_status and status:
        _carry(found, wanted, "status")
    if kind.tracks_generation and _spec_of(kind, found) != _spec_of(kind, wanted):
        after["generation"] = (integer_at(before, "generation") or 0) + 1


def take_status(found: JsonObject, wanted: JsonObject) -> JsonObject:
    """An update of the status: everything as found, but the status and who manages it."""
    answer = dict(found)
    _carry(wanted, answer, "status")
    answer["metadata"] = metadata = dict(object_at(found, "metadata"))
    _carry(object_at(wanted, "metadata"), metadata, "managedFields")
    return answer


def _spec_of(kind: Kind, found: JsonObject) -> bytes:
    """Everything but metadata and, where it is a subresource, status; as bytes, since to Python 1
    equals True.
    """
    hidden = {"metadata", "status"} if kind.has_status else {"metadata"}
    return encode({name: value for name, value in found.items() if name not in hidden})


def _carry(source: JsonObject, target: JsonObject, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def mark_deleted(found: JsonObject, now: datetime) -> None:
    """Set the time of deletion, once; the generation rises with it, so that controllers notice."""
    metadata = ensure_object(found, "metadata")
    generation = integer_at(metadata, "generation") or 0
    if "deletionGracePeriodSeconds" not in metadata and generation > 0:
        metadata["generation"] = generation + 1
    metadata.setdefault("deletionTimestamp", render_time(now))
    metadata["deletionGracePeriodSeconds"] = 0


def set_deletion_finalizers(found: JsonObject, propagation: str | None) -> None:
    """Have the garbage collector's finalizer say what was asked for; None keeps what is there."""
    if propagation is None:
        return
    metadata = ensure_object(found, "metadata")
    finalizers = [
        name for name in strings_at(metadata, "finalizers") if name not in {FOREGROUND, ORPHAN}
    ]
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(propagation)
    set_finalizers(metadata, [*finalizers, wanted] if wanted else finalizers)


def set_finalizers(metadata: JsonObject, finalizers: list[str]) -> None:
    if finalizers:
        metadata["finalizers"] = list[JsonValue](finalizers)
    else:
        metadata.pop("finalizers", None)


def may_leave(found: JsonObject) -> bool:
    """Whether a terminating object has nothing left to wait for."""
    metadata = object_at(found, "metadata")
    return "deletionTimestamp" in metadata and not strings_at(metadata, "finalizers")
