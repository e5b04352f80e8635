"""JSON patch (RFC 6902), as far as kustomizations use it. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from compute_api_types.wire import JsonObject, JsonValue
from e2e.kustomization.documents import text_at
from e2e.kustomization.errors import KustomizationError


def json_patch(found: JsonObject, operations: Iterable[JsonValue]) -> JsonObject:
    """The document after all operations; only add, replace, remove and test are known."""
    patched = copy.deepcopy(found)
    for operation in operations:
        if not isinstance(operation, dict):
            raise KustomizationError("patching: an operation of a JSON patch is no object")
        _apply_operation(patched, operation)
    return patched


def _apply_operation(document: JsonObject, operation: JsonObject) -> None:
    path, name = text_at(operation, "path"), text_at(operation, "op")
    *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    parent: JsonValue = document
    for step in steps:
        parent = _child(parent, step, path)
    value = copy.deepcopy(operation.get("value"))
    match name:
        case "add" if isinstance(parent, list):
            parent.insert(len(parent) if last == "-" else _index(parent, last, path), value)
        case "add" if isinstance(parent, dict):
            parent[last] = value
        case "replace" | "remove" | "test":
            _change(parent, last, operation, path)
        case _:
            raise KustomizationError(f"patching {path}: {name!r} is not possible there")


def _change(parent: JsonValue, last: str, operation: JsonObject, path: str) -> None:
    found, value = _child(parent, last, path), copy.deepcopy(operation.get("value"))
    match text_at(operation, "op"), parent:
        case "test", _:
            if found != value:
                raise KustomizationError(f"patching {path}: it is {found!r}, not {value!r}")
        case "remove", list():
            del parent[int(last)]
        case "remove", dict():
            del parent[last]
        case _, list():
            parent[int(last)] = value
        case _, dict():
            parent[last] = value
        case _:
            raise KustomizationError(f"patching {path}: there is no such field")


def _child(parent: JsonValue, step: str, path: str) -> JsonValue:
    if isinstance(parent, dict) and step in parent:
        return parent[step]
    if isinstance(parent, list):
        return parent[_index(parent, step, path)]
    raise KustomizationError(f"patching {path}: there is no {step!r}")


def _index(listed: list[JsonValue], step: str, path: str) -> int:
    if not step.isdigit() or int(step) >= len(listed):
        raise KustomizationError(f"patching {path}: the list has no element {step!r}")
    return int(step)
