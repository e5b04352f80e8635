"""Decoding of object metadata: known fields of known types, empty values dropped.

Metadata is not part of a kind's schema; a server decodes it into one fixed structure. Unknown
fields are dropped and reported, a value of another type is an error, and an empty value counts as
absent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from compute_sim_planes.json_types import JsonObject, JsonValue


class MetadataTypeError(ValueError):
    """A value of the wrong type; the message is that of Go's decoder."""


_Read = Callable[[JsonValue, str, list[str]], JsonValue]


def shape_metadata(sent: JsonValue) -> tuple[JsonObject, list[str]]:
    """The metadata without unknown or empty fields, and the paths of the unknown ones."""
    unknown: list[str] = []
    if sent is None:
        return {}, unknown
    if not isinstance(sent, dict):
        raise MetadataTypeError(
            f"json: cannot unmarshal {_type_name(sent)} into Go value of type v1.ObjectMeta"
        )
    return _read_struct(sent, _OBJECT_META, "metadata", "ObjectMeta", unknown), unknown


def _read_struct(
    sent: JsonObject, fields: dict[str, _Read], path: str, struct: str, unknown: list[str]
) -> JsonObject:
    shaped: JsonObject = {}
    for name, value in sent.items():
        read = fields.get(name)
        if read is None:
            unknown.append(f"{path}.{name}")
        elif value is not None:
            parsed = read(value, f"{struct}.{name}", unknown)
            if parsed or isinstance(parsed, bool | int):
                shaped[name] = parsed
    return shaped


def _mismatch(value: JsonValue, field: str, expected: str) -> MetadataTypeError:
    return MetadataTypeError(
        f"json: cannot unmarshal {_type_name(value)} into Go struct field {field} "
        f"of type {expected}"
    )


def _type_name(value: JsonValue) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _text(value: JsonValue, field: str, unknown: list[str]) -> JsonValue:
    del unknown
    if isinstance(value, str):
        return value
    raise _mismatch(value, field, "string")


def _number(value: JsonValue, field: str, unknown: list[str]) -> JsonValue:
    del unknown
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _mismatch(value, field, "int64")


def _flag(value: JsonValue, field: str, unknown: list[str]) -> JsonValue:
    del unknown
    if isinstance(value, bool):
        return value
    raise _mismatch(value, field, "bool")


def _texts_by_key(value: JsonValue, field: str, unknown: list[str]) -> JsonValue:
    if not isinstance(value, dict):
        raise _mismatch(value, field, "map[string]string")
    # Go decodes a null in a map of strings as the empty string.
    return {
        key: "" if inner is None else _text(inner, field, unknown) for key, inner in value.items()
    }


def _texts(value: JsonValue, field: str, unknown: list[str]) -> JsonValue:
    if not isinstance(value, list):
        raise _mismatch(value, field, "[]string")
    return [_text(inner, field, unknown) for inner in value]


def _owners(value: JsonValue, field: str, unknown: list[str]) -> JsonValue:
    if not isinstance(value, list):
        raise _mismatch(value, field, "[]v1.OwnerReference")
    shaped: list[JsonValue] = []
    for at, reference in enumerate(value):
        if not isinstance(reference, dict):
            raise _mismatch(reference, field, "v1.OwnerReference")
        path = f"metadata.ownerReferences[{at}]"
        shaped.append(_read_struct(reference, _OWNER, path, "OwnerReference", unknown))
    return shaped


def _managers(value: JsonValue, field: str, unknown: list[str]) -> JsonValue:
    """Unchanged: server-side apply reads them, and one empty entry resets ownership."""
    del unknown
    if isinstance(value, list):
        return value
    raise _mismatch(value, field, "[]v1.ManagedFieldsEntry")


_OWNER: Final[dict[str, _Read]] = {
    "apiVersion": _text,
    "blockOwnerDeletion": _flag,
    "controller": _flag,
    "kind": _text,
    "name": _text,
    "uid": _text,
}
_OBJECT_META: Final[dict[str, _Read]] = {
    "annotations": _texts_by_key,
    "creationTimestamp": _text,
    "deletionGracePeriodSeconds": _number,
    "deletionTimestamp": _text,
    "finalizers": _texts,
    "generateName": _text,
    "generation": _number,
    "labels": _texts_by_key,
    "managedFields": _managers,
    "name": _text,
    "namespace": _text,
    "ownerReferences": _owners,
    "resourceVersion": _text,
    "selfLink": _text,
    "uid": _text,
}
