"""Decoders of metadata, conditions and Events, which every kind shares.

Only our own annotation keys and those of Karmada are kept: values of other annotations may hold
secrets, and a value that was never decoded cannot be printed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.snapshot.json_reads import (
    number_at,
    object_at,
    objects_at,
    strings_at,
    text_at,
    texts_at,
    time_at,
)
from compute_kubectl.snapshot.objects import FieldWrite, Meta, SeenCondition, SeenEvent, SeenObject

POLICY_NAME: Final = "propagationpolicy.karmada.io/name"
KEPT_ANNOTATIONS: Final = frozenset(
    {
        labels.FEDERATION_NAMESPACE,
        labels.PROJECT_GENERATION,
        labels.INSTANCE_UID,
        labels.IDENTITY_REPAIRED,
        labels.SUSPENDED,
        labels.RESTARTED_AT,
        *labels.QUARANTINE_ANNOTATIONS,
        *labels.IDENTITY_LABELS,
        labels.KARMADA_TEMPLATE_UID,
        labels.KARMADA_TEMPLATE_GENERATION,
        POLICY_NAME,
    }
)
# More conditions than any kind has; a hostile object could have thousands.
MOST_CONDITIONS: Final = 100


def decode_meta(document: JsonObject) -> Meta:
    metadata = object_at(document, "metadata")
    owners = tuple(objects_at(metadata, "ownerReferences"))
    controllers = [text_at(owner, "uid") for owner in owners if owner.get("controller") is True]
    annotations = strings_at(metadata, "annotations")
    return Meta(
        kind=text_at(document, "kind"),
        name=text_at(metadata, "name"),
        namespace=text_at(metadata, "namespace"),
        uid=text_at(metadata, "uid"),
        generation=number_at(metadata, "generation") or 0,
        created=time_at(metadata, "creationTimestamp"),
        deleted=time_at(metadata, "deletionTimestamp"),
        labels=strings_at(metadata, "labels"),
        annotations={key: annotations[key] for key in annotations.keys() & KEPT_ANNOTATIONS},
        finalizers=texts_at(metadata, "finalizers"),
        owner_uids=tuple(text_at(owner, "uid") for owner in owners),
        controller_uid=controllers[0] if controllers else "",
        writes=tuple(_decode_write(entry) for entry in objects_at(metadata, "managedFields")),
    )


def _decode_write(entry: JsonObject) -> FieldWrite:
    parts = sorted(key.removeprefix("f:") for key in object_at(entry, "fieldsV1"))
    return FieldWrite(
        manager=text_at(entry, "manager"),
        at=time_at(entry, "time"),
        subresource=text_at(entry, "subresource"),
        parts=tuple(parts),
    )


def decode_conditions(status: JsonValue) -> tuple[SeenCondition, ...]:
    decoded = (_decode_condition(entry) for entry in objects_at(status, "conditions"))
    named = [one for one in decoded if one.type]
    return tuple(named[:MOST_CONDITIONS])


def _decode_condition(entry: JsonObject) -> SeenCondition:
    return SeenCondition(
        type=text_at(entry, "type"),
        status=text_at(entry, "status"),
        reason=text_at(entry, "reason"),
        message=text_at(entry, "message"),
        since=time_at(entry, "lastTransitionTime"),
        observed_generation=number_at(entry, "observedGeneration"),
    )


def find_unreadable(document: JsonObject, *, needs_spec: bool = True) -> str:
    """What keeps the document from being used; empty for one that can be."""
    if not text_at(document, "metadata", "name"):
        return "metadata.name is missing"
    if needs_spec and not object_at(document, "spec"):
        return "spec is missing or no object"
    return ""


def decode_object(document: JsonObject) -> SeenObject:
    """Any object by metadata and conditions."""
    return SeenObject(
        meta=decode_meta(document),
        conditions=decode_conditions(document.get("status")),
        unreadable=find_unreadable(document, needs_spec=False),
    )


def decode_event(document: JsonObject) -> SeenEvent:
    last = _first_time(document, ("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",))
    first = _first_time(document, ("firstTimestamp",), ("eventTime",))
    meta = decode_meta(document)
    series = number_at(document, "series", "count")
    return SeenEvent(
        meta=meta,
        unreadable=find_unreadable(document, needs_spec=False),
        about_kind=text_at(document, "involvedObject", "kind"),
        about_name=text_at(document, "involvedObject", "name"),
        about_uid=text_at(document, "involvedObject", "uid"),
        reason=text_at(document, "reason"),
        message=text_at(document, "message"),
        is_warning=text_at(document, "type") == "Warning",
        count=max(series or number_at(document, "count") or 1, 1),
        first=first or meta.created,
        last=last or first or meta.created,
        reporter=text_at(document, "reportingComponent")
        or text_at(document, "source", "component"),
    )


def _first_time(document: JsonObject, *paths: tuple[str, ...]) -> datetime | None:
    times = (time_at(document, *path) for path in paths)
    return next((one for one in times if one is not None), None)
