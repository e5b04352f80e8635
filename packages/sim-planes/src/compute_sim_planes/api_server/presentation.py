"""The form a client wants an answer in: as it is, as a table, or metadata alone.

`kubectl get` asks for tables, metadata informers for bare metadata, everybody else for the object.
The wish is in the Accept header; the first entry this server can satisfy counts.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.call import Call
from compute_sim_planes.api_server.kinds import Kind
from compute_sim_planes.api_server.storage.records import decode, encode
from compute_sim_planes.api_server.tables import render_table
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at

_ACCEPTED: Final = frozenset({"application/json", "application/*", "*/*", ""})


class Form(StrEnum):
    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Form | None:
    """The first form of an Accept header that can be had; None when there is none."""
    if not accept:
        return Form.OBJECT
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        if media.lower() not in _ACCEPTED:
            continue
        split = (parameter.partition("=") for parameter in parameters)
        wanted = {name: value for name, _, value in split}
        if "as" not in wanted:
            return Form.OBJECT
        is_ours = wanted.get("g") == "meta.k8s.io" and wanted.get("v") in {"v1", "v1beta1"}
        if is_ours and wanted["as"] in set(Form):
            return Form(wanted["as"])
    return None


def form_of(call: Call) -> Form:
    form = negotiate(call.headers.get("accept", ""))
    if form is None:
        raise api_errors.not_acceptable()
    return form


def present_object(call: Call, raw: bytes) -> bytes:
    """One object in the form that was asked for."""
    match form_of(call):
        case Form.OBJECT:
            return raw
        case Form.TABLE:
            found = decode(raw)
            version = string_at(found, "metadata", "resourceVersion")
            return encode(_table(call, [found], {"resourceVersion": version}))
        case Form.METADATA | Form.METADATA_LIST:
            return encode(_metadata_only(decode(raw)))


def present_list(
    call: Call,
    items: list[bytes],
    metadata: JsonObject,
    render: Callable[[Kind, list[bytes], JsonObject], bytes],
) -> bytes:
    """A list in the form that was asked for."""
    form = form_of(call)
    if form is not Form.OBJECT and not metadata.get("continue"):
        metadata.pop("continue", None)
    match form:
        case Form.OBJECT:
            return render(call.kind, items, metadata)
        case Form.TABLE:
            return encode(_table(call, [decode(item) for item in items], metadata))
        case Form.METADATA | Form.METADATA_LIST:
            bare: list[JsonValue] = [_metadata_only(decode(item)) for item in items]
            return encode(
                {
                    "apiVersion": "meta.k8s.io/v1",
                    "kind": "PartialObjectMetadataList",
                    "metadata": metadata,
                    "items": bare,
                }
            )


def _table(call: Call, items: list[JsonObject], metadata: JsonObject) -> JsonObject:
    return render_table(
        call.kind,
        items,
        metadata,
        now=call.state.clock.now(),
        include_object=call.query.get("includeObject") or "Metadata",
    )


def _metadata_only(found: JsonObject) -> JsonObject:
    return {
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": object_at(found, "metadata"),
    }
