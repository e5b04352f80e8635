"""Content negotiation: an object as it is, as a table, or as metadata only.

`kubectl get` requests tables, metadata informers request metadata, all other clients the object.
The first entry of the Accept header that the server supports is used.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.http.request import ApiRequest
from compute_sim_planes.api_server.http.tables import render_table
from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.api_server.storage.records import decode, encode
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at

_ACCEPTED: Final = frozenset({"application/json", "application/*", "*/*", ""})


class Form(StrEnum):
    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Form | None:
    """The first supported form of an Accept header; None when no entry is supported."""
    if not accept:
        return Form.OBJECT
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        if media.lower() not in _ACCEPTED:
            continue
        split = (parameter.partition("=") for parameter in parameters)
        options = {name: value for name, _, value in split}
        if "as" not in options:
            return Form.OBJECT
        is_ours = options.get("g") == "meta.k8s.io" and options.get("v") in {"v1", "v1beta1"}
        if is_ours and options["as"] in set(Form):
            return Form(options["as"])
    return None


def form_of(call: ApiRequest) -> Form:
    form = negotiate(call.headers.get("accept", ""))
    if form is None:
        raise api_errors.not_acceptable()
    return form


def present_object(call: ApiRequest, raw: bytes) -> bytes:
    """One object in the requested form."""
    match form_of(call):
        case Form.OBJECT:
            return raw
        case Form.TABLE:
            decoded = decode(raw)
            version = string_at(decoded, "metadata", "resourceVersion")
            return encode(_table(call, [decoded], {"resourceVersion": version}))
        case Form.METADATA | Form.METADATA_LIST:
            return encode(_metadata_only(decode(raw)))


def present_list(
    call: ApiRequest,
    items: list[bytes],
    metadata: JsonObject,
    render: Callable[[Kind, list[bytes], JsonObject], bytes],
) -> bytes:
    """A list in the requested form."""
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


def _table(call: ApiRequest, items: list[JsonObject], metadata: JsonObject) -> JsonObject:
    return render_table(
        call.kind,
        items,
        metadata,
        now=call.state.clock.now(),
        include_object=call.query.get("includeObject") or "Metadata",
    )


def _metadata_only(document: JsonObject) -> JsonObject:
    return {
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": object_at(document, "metadata"),
    }
