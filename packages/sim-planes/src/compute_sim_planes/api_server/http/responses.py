"""Responses: objects, lists and errors as bytes with headers.

The only module that sets content types. Objects are stored and sent as bytes; only a client that
requests a table or metadata costs a decode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.http.transport import BytesResponse
from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.api_server.storage.records import encode
from compute_sim_planes.json_types import JsonObject

JSON_HEADERS: Final = {"Content-Type": "application/json"}
TEXT_HEADERS: Final = {
    "Content-Type": "text/plain; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
}


def object_response(raw: bytes, status: int = 200, warnings: Sequence[str] = ()) -> BytesResponse:
    return BytesResponse(status, _headers(warnings), raw)


def json_response(
    body: JsonObject, status: int = 200, warnings: Sequence[str] = ()
) -> BytesResponse:
    # Keys keep their order, which for these bodies is that of a real server.
    return BytesResponse(status, _headers(warnings), orjson.dumps(body))


def text_response(text: str, status: int = 200) -> BytesResponse:
    return BytesResponse(status, TEXT_HEADERS, text.encode())


def error_response(error: StatusError) -> BytesResponse:
    headers = dict(JSON_HEADERS)
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return BytesResponse(error.code, headers, orjson.dumps(error.body()))


def render_list(kind: Kind, items: Iterable[bytes], metadata: JsonObject) -> bytes:
    """A list object around items that are already bytes."""
    head = b'{"apiVersion":"%s","kind":"%s","metadata":%s,"items":[' % (
        kind.api_version.encode(),
        kind.list_kind.encode(),
        encode(metadata),
    )
    return head + b",".join(items) + b"]}"


def _headers(warnings: Sequence[str]) -> dict[str, str]:
    if not warnings:
        return JSON_HEADERS
    # A header map holds one value per name; RFC 9110 allows to join several warnings.
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in dict.fromkeys(warnings))
    return {**JSON_HEADERS, "Warning": ", ".join(f'299 - "{text}"' for text in quoted)}
