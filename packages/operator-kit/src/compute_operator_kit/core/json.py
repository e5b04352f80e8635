"""JSON types, and the only calls of the codec (orjson).

Foreign JSON is read with `member_object`, `member_text` and the like, which return an empty value
for a wrong type: an object may have bypassed admission and must not raise in a controller. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias, TypeGuard

import msgspec
import orjson
from typing_extensions import override

from compute_api_types.depth import TOO_DEEP, is_too_deep


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """Encoded JSON that is inserted as it is, without decoding."""

    raw: bytes

    @override
    def __repr__(self) -> str:
        # Without the bytes: a repr may be logged, and they may be those of a Secret.
        return f"<{len(self.raw)} bytes>"


# Out of the codec: a fresh copy that may be changed.
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]
# Into the codec: read-only types, so that callers may pass narrower containers.
JsonValue: TypeAlias = (
    "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | Encoded | None"
)
JsonMapping: TypeAlias = Mapping[str, JsonValue]


_NOT_MAPS: Final = frozenset({str, int, float, bool, list, tuple, type(None)})


class UndecodableError(ValueError):
    """Bytes that are not the expected JSON."""


def _is_view(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, MappingProxyType)


def _plain(value: object) -> object:
    """Converts types that the codec does not know: read-only mappings and encoded JSON."""
    if type(value) is Encoded:
        return orjson.Fragment(value.raw)
    if _is_view(value):
        return dict(value)
    raise TypeError(f"encoding JSON: {type(value).__name__} has no form there")


def encode(body: JsonValue) -> bytes:
    return orjson.dumps(body, default=_plain)


def encode_to_keep(body: JsonValue) -> bytes:
    """As `encode`, in no more memory than the bytes need: the codec returns its buffer, which is up
    to twice as large.
    """
    return bytes(memoryview(encode(body)))


def encode_canonical(body: JsonValue) -> bytes:
    """Encodes with sorted keys, so that equal values give equal bytes; `Encoded` values must be
    sorted already, as API servers write them.
    """
    return orjson.dumps(body, default=_plain, option=orjson.OPT_SORT_KEYS)


def decode(raw: bytes) -> Json:
    try:
        decoded: Json = orjson.loads(raw)
    except orjson.JSONDecodeError as cause:
        # The codec's error has the whole text, which may hold secrets: only the position is kept.
        raise UndecodableError(f"decoding JSON: invalid at byte {cause.pos}") from None
    return decoded


def decode_json_object(raw: bytes) -> JsonObject:
    decoded = decode(raw)
    if not isinstance(decoded, dict):
        raise UndecodableError(f"decoding JSON: expected an object, found {type(decoded).__name__}")
    return decoded


def decode_foreign(raw: bytes) -> JsonObject:
    """As `decode_json_object`, with a check of the nesting depth."""
    if is_too_deep(raw):
        raise UndecodableError(f"decoding JSON: {TOO_DEEP}")
    return decode_json_object(raw)


def is_map(value: JsonValue) -> TypeGuard[JsonMapping]:
    """Whether the value is an object; by its class first, because `isinstance` of an abstract class
    takes ten times as long and runs for every member of a written object.
    """
    cls = type(value)
    return cls is dict or (cls not in _NOT_MAPS and isinstance(value, Mapping))


def member_object(parent: Mapping[str, Json], name: str) -> JsonObject:
    """The object at `name`; empty if there is none."""
    member = parent.get(name)
    return member if isinstance(member, dict) else {}


def member_list(parent: Mapping[str, Json], name: str) -> list[Json]:
    member = parent.get(name)
    return member if isinstance(member, list) else []


def member_text(parent: Mapping[str, Json], name: str) -> str:
    """The text at `name`; empty if there is none."""
    member = parent.get(name)
    return member if isinstance(member, str) else ""


def member_int(parent: Mapping[str, Json], name: str) -> int:
    """The integer at `name`; 0 if there is none."""
    member = parent.get(name)
    return member if isinstance(member, int) and not isinstance(member, bool) else 0
