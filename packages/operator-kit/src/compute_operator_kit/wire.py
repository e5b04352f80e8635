"""JSON as it travels: its types, and the only calls of the codec.

Readers of foreign JSON go through `member_object`/`member_text`, which answer with an empty value
where the shape is wrong: objects may have bypassed admission, and a wrong type must not end a loop.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias, TypeGuard

import msgspec
import orjson

from compute_api_types.depth import TOO_DEEP, is_too_deep


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """JSON that is passed on as it was served: neither read nor written anew."""

    raw: bytes


# Out of the codec: what `decode` gives, free to change because it is a fresh copy.
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]
# Into the codec: read-only shapes, so that callers may pass narrower containers.
JsonValue: TypeAlias = (
    "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | Encoded | None"
)
JsonMapping: TypeAlias = Mapping[str, JsonValue]


_NO_MAPS: Final = frozenset({str, int, float, bool, list, tuple, type(None)})


class UndecodableError(ValueError):
    """Bytes that are not the JSON object they should be."""


def _is_view(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, MappingProxyType)


def _plain(value: object) -> object:
    """What the codec does not know by itself: read-only views of what it does know, and its own
    work of before.
    """
    if type(value) is Encoded:
        return orjson.Fragment(value.raw)
    if _is_view(value):
        return dict(value)
    raise TypeError(f"encoding JSON: {type(value).__name__} has no form there")


def encode(body: JsonValue) -> bytes:
    return orjson.dumps(body, default=_plain)


def encode_to_keep(body: JsonValue) -> bytes:
    """As `encode`, in no more memory than the bytes need.

    The codec writes into a buffer that doubles and gives it away as it is: for a text of 4 KB that
    is kept, 8 KB.
    """
    return bytes(memoryview(encode(body)))


def encode_canonical(body: JsonValue) -> bytes:
    """Equal values give equal bytes, whatever the order of keys; `Encoded` ones if they were in
    that order before, as API servers write them.
    """
    return orjson.dumps(body, default=_plain, option=orjson.OPT_SORT_KEYS)


def decode(raw: bytes) -> Json:
    try:
        decoded: Json = orjson.loads(raw)
    except orjson.JSONDecodeError as cause:
        # The codec's error carries the whole text, which may hold secrets: only the place goes on.
        raise UndecodableError(f"decoding JSON: invalid at byte {cause.pos}") from None
    return decoded


def decode_object(raw: bytes) -> JsonObject:
    decoded = decode(raw)
    if not isinstance(decoded, dict):
        raise UndecodableError(f"decoding JSON: expected an object, found {type(decoded).__name__}")
    return decoded


def decode_foreign(raw: bytes) -> JsonObject:
    """As `decode_object`, of bytes that are not known to be within our limit of depth."""
    if is_too_deep(raw):
        raise UndecodableError(f"decoding JSON: {TOO_DEEP}")
    return decode_object(raw)


def is_map(value: JsonValue) -> TypeGuard[JsonMapping]:
    """Whether it is an object; asked of every member of what is sent, and asking an abstract class
    takes ten times as long as looking at the class.
    """
    found = type(value)
    return found is dict or (found not in _NO_MAPS and isinstance(value, Mapping))


def member_object(parent: Mapping[str, Json], name: str) -> JsonObject:
    """The object under `name`; empty where there is none."""
    member = parent.get(name)
    return member if isinstance(member, dict) else {}


def member_list(parent: Mapping[str, Json], name: str) -> list[Json]:
    member = parent.get(name)
    return member if isinstance(member, list) else []


def member_text(parent: Mapping[str, Json], name: str) -> str:
    """The text under `name`; empty where there is none."""
    member = parent.get(name)
    return member if isinstance(member, str) else ""


def member_int(parent: Mapping[str, Json], name: str) -> int:
    """The integer under `name`; 0 where there is none."""
    member = parent.get(name)
    return member if isinstance(member, int) and not isinstance(member, bool) else 0
