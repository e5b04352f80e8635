"""The subset of JSONPath that printer columns use.

Fields (with escaped dots), quoted keys, indexes, `[*]` and filters by equality. Any other path is
refused when the CRD is written, not when a table is rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_sim_planes.json_types import JsonValue


class JsonPathError(ValueError):
    """A path outside the supported subset."""


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
    """Items of a list with a field equal to a text or, where `is_equal` is false, not equal."""

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
    if match := _ALL.match(rest):
        return AllItems(), match.end()
    if match := _FIELD.match(rest):
        return Field(_unescape(match["name"])), match.end()
    if match := _QUOTED.match(rest):
        return Field(_unescape(match["name"])), match.end()
    if match := _INDEX.match(rest):
        return Index(int(match["at"])), match.end()
    if match := _FILTER.match(rest):
        field = tuple(_unescape(name) for name in re.split(r"(?<!\\)\.", match["field"])[1:])
        return Filter(field, match["operator"] == "==", match["value"]), match.end()
    raise JsonPathError(f"reading path {text!r}: {rest!r} is no step")


def _unescape(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def find_values(value: JsonValue, steps: tuple[Step, ...]) -> Iterator[JsonValue]:
    """The values at the path; none where it does not exist, which is no error for a column."""
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
            yield from (item for item in _items(value) if _matches_filter(item, step))


def _items(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _matches_filter(item: JsonValue, condition: Filter) -> bool:
    for name in condition.field:
        if not isinstance(item, dict) or name not in item:
            return False
        item = item[name]
    return (item == condition.value) is condition.is_equal
