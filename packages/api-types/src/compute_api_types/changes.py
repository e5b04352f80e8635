"""Changes of a document by field path, and the merge that writes a changed model back.

A model has only the fields that this release knows. Sent as it is, it would delete every field of a
newer release from the stored object (`docs/spec/api.md` 14, trap 10); `merge` changes exactly what
the caller changed, and names what it could not keep. Pure; nothing here changes its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from compute_api_types.problems import FieldProblem, ProblemKind, derive_path

if TYPE_CHECKING:
    from compute_api_types.wire import JsonObject, JsonValue

_STEP: Final = re.compile(
    r"(?:^|(?<=[^\[])\.)(?P<field>[A-Za-z][A-Za-z0-9]*)|\[(?P<key>[^\[\]]+)\]"
)
# By what the elements of a list are known, the first that all of them have.
_KEYS: Final = ("name", "type")


class UnknownPathError(Exception):
    """For `Model.with_fields`, which turns it into an error with the name of the object."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(detail)
        self.problem: Final = FieldProblem(path, ProblemKind.INVALID, detail)


@dataclass(frozen=True, slots=True)
class WriteBack:
    """A document to send, and the paths of fields unknown to this release that it does not carry.

    `lost` is empty unless elements of a list without names were replaced in a way that does not
    show which of the stored ones each continues.
    """

    document: JsonObject
    lost: tuple[str, ...] = ()


def set_field(document: JsonObject, path: str, value: JsonValue) -> JsonObject:
    """The document with one field as given; None removes it.

    Objects on the way are made where they are absent. An element of a list is chosen by its index
    or by its name, `placements[texas]`, a key of a map by itself, `labels[app]`.

    Raises:
        UnknownPathError: when the path has no such form, or names an element that is not there.
    """
    return _set_in_object(document, _parse(path), value, path)


def _parse(path: str) -> list[str]:
    steps = list(_STEP.finditer(path))
    if not steps or "".join(step[0] for step in steps) != path or steps[0]["field"] is None:
        raise UnknownPathError(
            path, "must be a path of wire names, such as spec.placements[texas].cityCodes[0]"
        )
    return [step["field"] or step["key"] for step in steps]


def _set_in_object(
    found: JsonObject, steps: Sequence[str], value: JsonValue, path: str
) -> JsonObject:
    field, *rest = steps
    kept = {key: each for key, each in found.items() if key != field}
    if not rest:
        return kept if value is None else {**found, field: value}
    inner = found.get(field)
    if isinstance(inner, list):
        return {**found, field: _set_in_list(inner, rest, value, path)}
    if inner is not None and not isinstance(inner, dict):
        raise UnknownPathError(path, f"{field} holds neither an object nor a list")
    return {**found, field: _set_in_object(inner or {}, rest, value, path)}


def _set_in_list(
    found: list[JsonValue], steps: Sequence[str], value: JsonValue, path: str
) -> list[JsonValue]:
    key, *rest = steps
    index = _index_of(found, key)
    if index is None:
        raise UnknownPathError(path, f"the list has no element {key[:64]!r}")
    if not rest:
        return [*found[:index], *([] if value is None else [value]), *found[index + 1 :]]
    element = found[index]
    if not isinstance(element, dict):
        raise UnknownPathError(path, f"element {key[:64]!r} holds no object")
    return [*found[:index], _set_in_object(element, rest, value, path), *found[index + 1 :]]


def _index_of(found: Sequence[JsonValue], key: str) -> int | None:
    for index, element in enumerate(found):
        if isinstance(element, dict) and key in (element.get(each) for each in _KEYS):
            return index
    is_index = key.isascii() and key.isdigit() and len(key) < 10 and int(key) < len(found)
    return int(key) if is_index else None


def merge(found: JsonObject, known: JsonObject, wanted: JsonObject) -> WriteBack:
    """What differs between known and wanted, carried over to found.

    `known` is what this release reads of `found`, and `wanted` what a caller made of it.
    """
    lost: list[str] = []
    return WriteBack(_merge_objects(found, known, wanted, (), lost), tuple(lost))


def _merge_values(
    found: JsonValue,
    known: JsonValue,
    wanted: JsonValue,
    path: tuple[int | str, ...],
    lost: list[str],
) -> JsonValue:
    if known == wanted:
        return found
    if isinstance(found, dict) and isinstance(known, dict) and isinstance(wanted, dict):
        return _merge_objects(found, known, wanted, path, lost)
    if isinstance(found, list) and isinstance(known, list) and isinstance(wanted, list):
        return _merge_lists(found, known, wanted, path, lost)
    return wanted


def _merge_objects(
    found: JsonObject,
    known: JsonObject,
    wanted: JsonObject,
    path: tuple[int | str, ...],
    lost: list[str],
) -> JsonObject:
    merged: JsonObject = {}
    for key, value in found.items():
        if key in wanted:
            merged[key] = _merge_values(value, known.get(key), wanted[key], (*path, key), lost)
        elif key not in known:
            merged[key] = value
    # A field that reading filled in, such as a counter of 0, is no change.
    added = {key: value for key, value in wanted.items() if key not in found}
    return merged | {key: value for key, value in added.items() if known.get(key) != value}


def _merge_lists(
    found: list[JsonValue],
    known: list[JsonValue],
    wanted: list[JsonValue],
    path: tuple[int | str, ...],
    lost: list[str],
) -> list[JsonValue]:
    predecessors = _match(known, wanted)
    merged: list[JsonValue] = []
    for element, index in zip(wanted, predecessors, strict=True):
        if index is None:
            merged.append(element)
        else:
            merged.append(_merge_values(found[index], known[index], element, (*path, index), lost))
    # With a key, or where no element is new, what has no successor was removed on purpose.
    if None in predecessors and _key_of(known, wanted) is None:
        for index in sorted(set(range(len(known))) - set(predecessors)):
            lost += _unknown_fields(found[index], known[index], (*path, index))
    return merged


def _match(known: list[JsonValue], wanted: list[JsonValue]) -> list[int | None]:
    """For each wanted element the index of the stored one that it continues."""
    key = _key_of(known, wanted)
    if key is not None:
        indexes = {_key_value(element, key): index for index, element in enumerate(known)}
        return [indexes.get(_key_value(element, key)) for element in wanted]
    if len(known) == len(wanted):
        return [*range(len(known))]
    free = [*range(len(known))]
    matched: list[int | None] = []
    for element in wanted:
        same = next((index for index in free if known[index] == element), None)
        if same is not None:
            free.remove(same)
        matched.append(same)
    return matched


def _key_of(known: list[JsonValue], wanted: list[JsonValue]) -> str | None:
    for key in _KEYS:
        if all(_has_distinct(elements, key) for elements in (known, wanted)):
            return key
    return None


def _has_distinct(elements: list[JsonValue], key: str) -> bool:
    values = [_key_value(element, key) for element in elements]
    return None not in values and len(set(values)) == len(values)


def _key_value(element: JsonValue, key: str) -> str | None:
    value = element.get(key) if isinstance(element, dict) else None
    return value if isinstance(value, str) else None


def _unknown_fields(
    found: JsonValue, known: JsonValue, path: tuple[int | str, ...]
) -> Iterator[str]:
    if isinstance(found, dict) and isinstance(known, dict):
        for key, value in found.items():
            if key in known:
                yield from _unknown_fields(value, known[key], (*path, key))
            elif value is not None:
                yield derive_path((*path, key))
    elif isinstance(found, list) and isinstance(known, list):
        for index, (one, other) in enumerate(zip(found, known, strict=True)):
            yield from _unknown_fields(one, other, (*path, index))
