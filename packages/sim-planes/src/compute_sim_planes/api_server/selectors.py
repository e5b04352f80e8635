"""Label and field selectors: parsed once per request, then asked about many objects.

A selector that cannot be read is refused with the text a user needs; it never becomes "everything",
because a mistyped selector on a delete would then take the whole collection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from compute_sim_planes.api_server import object_names
from compute_sim_planes.json_types import JsonObject, string_at


class SelectorError(ValueError):
    """The text is no selector: 400 on the wire."""


class LabelSelectorError(SelectorError):
    """A label selector that cannot be read."""


class FieldSelectorError(SelectorError):
    """A field selector that cannot be read, or that asks about a field this kind does not offer."""


class Operator(StrEnum):
    """How a requirement compares."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case Operator.EXISTS:
                return found is not None
            case Operator.DOES_NOT_EXIST:
                return found is None
            case Operator.IN:
                return found in self.values
            case Operator.NOT_IN:
                # An absent label is not in any set.
                return found not in self.values
            case Operator.GREATER | Operator.LESS:
                return self._compares(found)

    def _compares(self, found: str | None) -> bool:
        if found is None or not _is_integer(found):
            return False
        (limit,) = self.values
        if self.operator is Operator.GREATER:
            return int(found) > int(limit)
        return int(found) < int(limit)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; none means everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One term of a field selector."""

    path: str
    is_equal: bool
    value: str

    def matches(self, found: JsonObject) -> bool:
        return (string_at(found, *self.path.split(".")) == self.value) is self.is_equal


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements must hold; none means everything. An absent field is an empty text."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, found: JsonObject) -> bool:
        return all(requirement.matches(found) for requirement in self.requirements)


_EXACT: Final = re.compile(
    r"(?P<key>[^=!<>\s]+)\s*(?P<operator>==|=|!=|<|>)\s*(?P<value>[^=!<>\s]*)"
)
_SET: Final = re.compile(
    r"(?P<key>[^=!<>\s(),]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)"
)
_PRESENT: Final = re.compile(r"(?P<absent>!?)\s*(?P<key>[^=!<>\s(),]+)")
_OPERATORS: Final = {"=": Operator.IN, "==": Operator.IN, "!=": Operator.NOT_IN}


def parse_label_selector(text: str) -> LabelSelector:
    """The selector; `a=b,c in (d,e),!f,g>1` and nothing else. An empty text selects everything."""
    if not text.strip():
        return LabelSelector()
    return LabelSelector(tuple(_parse_requirement(term) for term in _split_terms(text)))


def _split_terms(text: str) -> list[str]:
    """Terms are parted by commas that are in no parentheses."""
    terms, depth, begin = list[str](), 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            terms.append(text[begin:at])
            begin = at + 1
    return [*terms, text[begin:]]


def _parse_requirement(term: str) -> Requirement:
    term = term.strip()
    if found := _EXACT.fullmatch(term):
        return _parse_comparison(found["key"], found["operator"], found["value"])
    if found := _SET.fullmatch(term):
        values = frozenset(_checked_value(value.strip()) for value in found["values"].split(","))
        return Requirement(_checked_key(found["key"]), Operator(found["operator"]), values)
    if found := _PRESENT.fullmatch(term):
        operator = Operator.DOES_NOT_EXIST if found["absent"] else Operator.EXISTS
        return Requirement(_checked_key(found["key"]), operator)
    raise LabelSelectorError(f"unable to parse requirement: found {term!r}")


def _parse_comparison(key: str, operator: str, value: str) -> Requirement:
    if operator in _OPERATORS:
        values = frozenset({_checked_value(value)})
        return Requirement(_checked_key(key), _OPERATORS[operator], values)
    if not _is_integer(value):
        raise LabelSelectorError(
            f"values[0]: Invalid value: {value!r}: "
            "for 'Gt', 'Lt' operators, the value must be an integer"
        )
    return Requirement(_checked_key(key), Operator(operator), frozenset({value}))


def _checked_key(key: str) -> str:
    for detail in object_names.qualified_name_problems(key):
        raise LabelSelectorError(
            f'unable to parse requirement: key: Invalid value: "{key}": {detail}'
        )
    return key


def _checked_value(value: str) -> str:
    for detail in object_names.label_value_problems(value):
        raise LabelSelectorError(
            f'unable to parse requirement: values[0]: Invalid value: "{value}": {detail}'
        )
    return value


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None


def parse_field_selector(text: str, supported: frozenset[str] | None = None) -> FieldSelector:
    """The selector; `metadata.name=a,spec.x!=b`. A path outside `supported` is refused."""
    terms = [term for term in _split_escaped(text) if term]
    return FieldSelector(tuple(_parse_field_requirement(term, supported) for term in terms))


def _parse_field_requirement(term: str, supported: frozenset[str] | None) -> FieldRequirement:
    found = re.fullmatch(r"(?P<path>[^=!]*)(?P<operator>!=|==|=)(?P<value>.*)", term, re.DOTALL)
    if found is None:
        raise FieldSelectorError(f"invalid selector: '{term}'; can't understand '{term}'")
    path = found["path"].strip()
    if supported is not None and path not in supported:
        raise FieldSelectorError(f"field label not supported: {path}")
    return FieldRequirement(path, found["operator"] != "!=", _unescape(found["value"]))


def _split_escaped(text: str) -> list[str]:
    return [part.replace("\0", "\\,") for part in text.replace("\\,", "\0").split(",")]


def _unescape(value: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", value)
