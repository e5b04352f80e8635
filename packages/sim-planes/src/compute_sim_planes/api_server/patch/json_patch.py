"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902), as pure functions.

Both return a new object and do not change the existing one, so a patch that fails half-way has no
effect. Versions, ownership and schema are checked by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from compute_sim_planes.json_copies import copy_json, copy_object
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue

# The limit of a real server.
MAX_OPERATIONS: Final = 10_000


class PatchError(ValueError):
    """The patch does not fit the object: 422 on the wire."""


class PatchSyntaxError(PatchError):
    """The patch is malformed: 400 on the wire."""


class PatchTestFailedError(PatchError):
    """A `test` operation failed: 422 on the wire; for the client a lost race."""


def merge_patch(existing: JsonObject, patch: JsonValue) -> JsonObject:
    """The object with the patch merged in: objects by key, null removes, other values replace."""
    if not isinstance(patch, dict):
        raise PatchSyntaxError("Invalid JSON Patch")
    merged = dict(existing)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            inner = existing.get(key)
            merged[key] = merge_patch(inner if isinstance(inner, dict) else {}, value)
        else:
            merged[key] = copy_json(value)
    return merged


def json_patch(existing: JsonObject, operations: JsonValue) -> JsonObject:
    """The object after all operations in order; when one fails, none has an effect."""
    if not isinstance(operations, list):
        raise PatchSyntaxError("a JSON patch must be an array of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchSyntaxError(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}"
        )
    patched: JsonValue = copy_object(existing)
    for operation in operations:
        patched = _apply_operation(patched, operation)
    if not isinstance(patched, dict):
        raise PatchError("patching the whole document: the result is no object")
    return patched


def _apply_operation(document: JsonValue, operation: JsonValue) -> JsonValue:
    if not isinstance(operation, dict):
        raise PatchSyntaxError("an operation of a JSON patch must be an object")
    name = operation.get("op")
    apply_one = _OPERATIONS.get(name) if isinstance(name, str) else None
    if apply_one is None:
        raise PatchError(f"Unexpected kind: {name}")
    return apply_one(document, operation)


def parse_pointer(text: JsonValue) -> list[str]:
    """The steps of a JSON pointer (RFC 6901); the empty pointer is the whole document."""
    if not isinstance(text, str):
        raise PatchSyntaxError("a JSON patch operation needs a path")
    if text == "":
        return []
    if not text.startswith("/"):
        raise PatchError(f"reading pointer {text!r}: it must begin with a slash")
    return [step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/")]


def _add(document: JsonValue, operation: JsonObject) -> JsonValue:
    return _insert(document, operation.get("path"), _value_of(operation))


def _remove(document: JsonValue, operation: JsonObject) -> JsonValue:
    _take(document, operation.get("path"))
    return document


def _replace(document: JsonValue, operation: JsonObject) -> JsonValue:
    path, value = operation.get("path"), _value_of(operation)
    steps = parse_pointer(path)
    if not steps:
        return value
    parent, last = _parent_of(document, steps)
    if isinstance(parent, dict):
        if last not in parent:
            raise PatchError(
                f"replace operation does not apply: doc is missing key: {path}: missing value"
            )
        parent[last] = value
    else:
        parent[_index(last, len(parent) - 1)] = value
    return document


def _move(document: JsonValue, operation: JsonObject) -> JsonValue:
    source, target = operation.get("from"), operation.get("path")
    if [*parse_pointer(target)][: len(parse_pointer(source))] == parse_pointer(source):
        if source == target:
            return document
        raise PatchError(f"moving {source!r}: the target {target!r} lies inside it")
    return _insert(document, target, _take(document, source))


def _copy(document: JsonValue, operation: JsonObject) -> JsonValue:
    value = copy_json(_look_up(document, parse_pointer(operation.get("from"))))
    return _insert(document, operation.get("path"), value)


def _test(document: JsonValue, operation: JsonObject) -> JsonValue:
    path, expected = operation.get("path"), operation.get("value")
    try:
        current = _look_up(document, parse_pointer(path))
    except PatchError:
        # An absent value equals null, so that "test null, then add" guards a creation.
        current = None
    if not is_equal_json(current, expected):
        raise PatchTestFailedError(f"testing value {path} failed: test failed")
    return document


_OPERATIONS: Final[dict[str, Callable[[JsonValue, JsonObject], JsonValue]]] = {
    "add": _add,
    "copy": _copy,
    "move": _move,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
}


def is_equal_json(one: JsonValue, other: JsonValue) -> bool:
    """JSON equality: true is not 1 at any depth, and key order is irrelevant."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal_json(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _value_of(operation: JsonObject) -> JsonValue:
    if "value" not in operation:
        raise PatchError(f"{operation.get('op')} operation needs a value")
    return copy_json(operation["value"])


def _insert(document: JsonValue, pointer: JsonValue, value: JsonValue) -> JsonValue:
    steps = parse_pointer(pointer)
    if not steps:
        return value
    parent, last = _parent_of(document, steps)
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(_index(last, len(parent)), value)
    return document


def _take(document: JsonValue, pointer: JsonValue) -> JsonValue:
    steps = parse_pointer(pointer)
    if not steps:
        raise PatchError("removing the whole document is not possible")
    parent, last = _parent_of(document, steps)
    if isinstance(parent, list):
        return parent.pop(_index(last, len(parent) - 1))
    if last not in parent:
        raise PatchError(
            f"remove operation does not apply: doc is missing path: {pointer}: missing value"
        )
    return parent.pop(last)


def _parent_of(document: JsonValue, steps: list[str]) -> tuple[JsonObject | JsonArray, str]:
    parent = _look_up(document, steps[:-1])
    if not isinstance(parent, dict | list):
        raise PatchError(f"doc is missing path: /{'/'.join(steps)}: missing value")
    return parent, steps[-1]


def _look_up(document: JsonValue, steps: list[str]) -> JsonValue:
    for step in steps:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(step, len(document) - 1)]
        else:
            raise PatchError(f"doc is missing path: /{'/'.join(steps)}: missing value")
    return document


def _index(step: str, last: int) -> int:
    is_number = step.isascii() and step.isdigit() and (step == "0" or not step.startswith("0"))
    if not is_number or int(step) > last:
        raise PatchError(f"Unable to access invalid index: {step}: invalid index referenced")
    return int(step)
