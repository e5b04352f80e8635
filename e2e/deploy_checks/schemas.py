"""Checks a document of a built-in kind for unknown fields, missing fields and wrong types.

The schemas are those of the official Python client, which is generated from the API. Ranges,
cross-field rules and CEL are checked by a real server. Pure.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.objects import text_at

_CONTAINER: Final = re.compile(r"(?P<outer>[Ll]ist|[Dd]ict)[\[(](?:str, )?(?P<inner>.+)[\])]")
_PLAIN: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "datetime": (str,),
    "object": (bool, int, float, str, list, dict),
    "bytearray": (str,),
}


@dataclass(frozen=True, slots=True)
class _Schema:
    """The fields of one type of the client: names on the wire and types."""

    types: Mapping[str, str]
    required: frozenset[str]


def find_schema_problems(document: JsonObject) -> list[str]:
    """The problems of a document; a kind that the client does not have is one."""
    kind = text_at(document, "kind")
    _, _, version = text_at(document, "apiVersion").rpartition("/")
    name = version.capitalize() + kind
    if _load(name) is None:
        return [f"{text_at(document, 'apiVersion')} {kind}: no such kind"]
    return list(_check(document, name, kind))


def _check(value: JsonValue, wanted: str, path: str) -> Iterator[str]:
    if container := _CONTAINER.fullmatch(wanted):
        yield from _check_container(value, container["outer"].lower(), container["inner"], path)
    elif wanted in _PLAIN:
        is_number = isinstance(value, bool) and bool not in _PLAIN[wanted]
        if is_number or not isinstance(value, _PLAIN[wanted]):
            yield f"{path}: expected {wanted}, found {type(value).__name__}"
    elif not isinstance(value, dict):
        yield f"{path}: expected an object, found {type(value).__name__}"
    else:
        yield from _check_object(value, wanted, path)


def _check_container(value: JsonValue, outer: str, inner: str, path: str) -> Iterator[str]:
    if outer == "list" and isinstance(value, list):
        for index, element in enumerate(value):
            yield from _check(element, inner, f"{path}[{index}]")
    elif outer == "dict" and isinstance(value, dict):
        for key, element in value.items():
            yield from _check(element, inner, f"{path}[{key}]")
    else:
        yield f"{path}: expected a {outer}, found {type(value).__name__}"


def _check_object(value: JsonObject, wanted: str, path: str) -> Iterator[str]:
    schema = _load(wanted)
    if schema is None:
        yield f"{path}: type {wanted} is not known"
        return
    for name in sorted(schema.required - set(value)):
        yield f"{path}.{name}: missing"
    for name, inner in value.items():
        if name not in schema.types:
            yield f"{path}.{name}: unknown field"
        else:
            yield from _check(inner, schema.types[name], f"{path}.{name}")


def _load(name: str) -> _Schema | None:
    # The client ships no type annotations, so the parts that are used are annotated here.
    model: object = getattr(importlib.import_module("kubernetes.client.models"), name, None)
    if model is None:
        return None
    types: dict[str, str] = getattr(model, "openapi_types", {})
    wire: dict[str, str] = getattr(model, "attribute_map", {})
    fields: dict[str, object] = getattr(model, "model_fields", {})
    needed = {wire[name] for name, field in fields.items() if _is_required(field)}
    return _Schema({wire[name]: schema for name, schema in types.items()}, frozenset(needed))


def _is_required(field: object) -> bool:
    ask = getattr(field, "is_required", None)
    return callable(ask) and ask() is True
