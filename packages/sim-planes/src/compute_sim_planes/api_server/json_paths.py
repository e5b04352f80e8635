"""The subset of JSONPath that printer columns are written in.

Fields (with escaped dots), quoted keys, indexes, `[*]` and filters by equality. A path that is
something else raises when it is parsed, which is when the CRD is written, never when a user asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_sim_planes.json_types import JsonValue


class JsonPathError(ValueError):
    """The text is no path this server can follow."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    at: int


@dataclass(frozen=True, slots=True)
class AllItems:
    pass


@dataclass(frozen=True, slots=True)
class Filter:
    """Items of a list whose field equals a text or, where `is_equal` is false, does not."""

    field: tuple[str, ...]
    is_equal: bool
    value: str


Step: TypeAlias = Field | Index | AllItems | Filter

_FIELD: Final = re.compile(r"\.(?P<name>(?:\\.|[^.\[\]\\])+)")
_QUOTED: Final = re.compile(r"\[(?P<quote>['\"])(?P<name>(?:\\.|(?!(?P=quote)).)+)(?P=quote)\]")
_INDEX: Final = re.compile(r"\[(?P<at>-?[0-9]+)\]")
_ALL: Final = re.compile(r"\[\*\]|\.\*")
_FILTER: Final = re.compile(
    r"\[\?\(\s*@(?P<field>(?:\.[A-Za-z0-9_\\./-]+)+)\s*(?P<operator>==|!=)\s*"
    r"(?P<quote>['\"])(?P<value>[^'\"]*)(?P=quote)\s*\)\]"
)


def parse_json_path(text: str) -> tuple[Step, ...]:
    """The steps of `.status.conditions[?(@.type=="Ready")].status` and the like."""
    rest = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps: list[Step] = []
    while rest:
        step, length = _parse_step(rest, text)
        steps.append(step)
        rest = rest[length:]
    if not steps:
        raise JsonPathError(f"reading path {text!r}: it names nothing")
    return tuple(steps)


def _parse_step(rest: str, text: str) -> tuple[Step, int]:
    if found := _ALL.match(rest):
        return AllItems(), found.end()
    if found := _FIELD.match(rest):
        return Field(_unescape(found["name"])), found.end()
    if found := _QUOTED.match(rest):
        return Field(_unescape(found["name"])), found.end()
    if found := _INDEX.match(rest):
        return Index(int(found["at"])), found.end()
    if found := _FILTER.match(rest):
        field = tuple(_unescape(name) for name in re.split(r"(?<!\\)\.", found["field"])[1:])
        return Filter(field, found["operator"] == "==", found["value"]), found.end()
    raise JsonPathError(f"reading path {text!r}: {rest!r} is no step")


def _unescape(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def find_values(value: JsonValue, steps: tuple[Step, ...]) -> Iterator[JsonValue]:
    """What lies at the path; nothing where it leads nowhere, which is no error for a column."""
    if not steps:
        yield value
        return
    for inner in _follow(value, steps[0]):
        yield from find_values(inner, steps[1:])


def _follow(value: JsonValue, step: Step) -> Iterator[JsonValue]:
    match step:
        case Field(name):
            if isinstance(value, dict) and name in value:
                yield value[name]
        case Index(at):
            if isinstance(value, list) and -len(value) <= at < len(value):
                yield value[at]
        case AllItems():
            yield from _items(value)
        case Filter():
            yield from (item for item in _items(value) if _passes(item, step))


def _items(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _passes(item: JsonValue, wanted: Filter) -> bool:
    for name in wanted.field:
        if not isinstance(item, dict) or name not in item:
            return False
        item = item[name]
    return (item == wanted.value) is wanted.is_equal
