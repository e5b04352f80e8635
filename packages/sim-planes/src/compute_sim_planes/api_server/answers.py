"""Bodies of answers: objects, lists, errors, as bytes with their headers.

The one place that knows content types. Objects arrive as bytes and leave as bytes; only a client
that asked for another form of them (a table, bare metadata) costs a decode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.kinds import Kind
from compute_sim_planes.api_server.storage.records import encode
from compute_sim_planes.api_server.transport import BytesAnswer
from compute_sim_planes.json_types import JsonObject

JSON_HEADERS: Final = {"Content-Type": "application/json"}
TEXT_HEADERS: Final = {
    "Content-Type": "text/plain; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
}


def answer_object(raw: bytes, status: int = 200, warnings: Sequence[str] = ()) -> BytesAnswer:
    return BytesAnswer(status, _headers(warnings), raw)


def answer_json(body: JsonObject, status: int = 200, warnings: Sequence[str] = ()) -> BytesAnswer:
    # Keys keep their order: these are bodies of the server's own making, written as a real one
    # writes them.
    return BytesAnswer(status, _headers(warnings), orjson.dumps(body))


def answer_text(text: str, status: int = 200) -> BytesAnswer:
    return BytesAnswer(status, TEXT_HEADERS, text.encode())


def answer_error(error: ApiError) -> BytesAnswer:
    headers = dict(JSON_HEADERS)
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return BytesAnswer(error.code, headers, orjson.dumps(error.body()))


def render_list(kind: Kind, items: Iterable[bytes], metadata: JsonObject) -> bytes:
    """A list object around items that are bytes already."""
    head = b'{"apiVersion":"%s","kind":"%s","metadata":%s,"items":[' % (
        kind.api_version.encode(),
        kind.list_kind.encode(),
        encode(metadata),
    )
    return head + b",".join(items) + b"]}"


def _headers(warnings: Sequence[str]) -> dict[str, str]:
    if not warnings:
        return JSON_HEADERS
    # A header map holds one value per name; several warnings share it, as RFC 9110 allows.
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in dict.fromkeys(warnings))
    return {**JSON_HEADERS, "Warning": ", ".join(f'299 - "{text}"' for text in quoted)}
