"""Label and field selectors: parsed once per request, matched against many objects.

An invalid selector is refused and never treated as empty: on a deletecollection an empty one would
delete everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from compute_sim_planes.api_server.kinds import object_names
from compute_sim_planes.json_types import JsonObject, string_at


class SelectorError(ValueError):
    """An invalid selector: 400 on the wire."""


class LabelSelectorError(SelectorError):
    """An invalid label selector."""


class FieldSelectorError(SelectorError):
    """An invalid field selector, or one on a field that the kind does not support."""


class Operator(StrEnum):
    """The operator of a requirement."""

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
        value = labels.get(self.key)
        match self.operator:
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                # An absent label is not in any set.
                return value not in self.values
            case Operator.GREATER | Operator.LESS:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        if value is None or not _is_integer(value):
            return False
        (limit,) = self.values
        if self.operator is Operator.GREATER:
            return int(value) > int(limit)
        return int(value) < int(limit)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; without one everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One term of a field selector."""

    path: str
    is_equal: bool
    value: str

    def matches(self, document: JsonObject) -> bool:
        return (string_at(document, *self.path.split(".")) == self.value) is self.is_equal


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements must hold; without one everything matches. An absent field is an empty
    string.
    """

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, document: JsonObject) -> bool:
        return all(requirement.matches(document) for requirement in self.requirements)


_EXACT: Final = re.compile(
    r"(?P<key>[^=!<>\s]+)\s*(?P<operator>==|=|!=|<|>)\s*(?P<value>[^=!<>\s]*)"
)
_SET: Final = re.compile(
    r"(?P<key>[^=!<>\s(),]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)"
)
_PRESENT: Final = re.compile(r"(?P<absent>!?)\s*(?P<key>[^=!<>\s(),]+)")
_OPERATORS: Final = {"=": Operator.IN, "==": Operator.IN, "!=": Operator.NOT_IN}


def parse_label_selector(text: str) -> LabelSelector:
    """Parses `a=b,c in (d,e),!f,g>1`. An empty text selects everything."""
    if not text.strip():
        return LabelSelector()
    return LabelSelector(tuple(_parse_requirement(term) for term in _split_terms(text)))


def _split_terms(text: str) -> list[str]:
    """Terms, separated by commas outside parentheses."""
    terms, depth, begin = list[str](), 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            terms.append(text[begin:at])
            begin = at + 1
    return [*terms, text[begin:]]


def _parse_requirement(term: str) -> Requirement:
    term = term.strip()
    if match := _EXACT.fullmatch(term):
        return _parse_comparison(match["key"], match["operator"], match["value"])
    if match := _SET.fullmatch(term):
        values = frozenset(_checked_value(value.strip()) for value in match["values"].split(","))
        return Requirement(_checked_key(match["key"]), Operator(match["operator"]), values)
    if match := _PRESENT.fullmatch(term):
        operator = Operator.DOES_NOT_EXIST if match["absent"] else Operator.EXISTS
        return Requirement(_checked_key(match["key"]), operator)
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
    """Parses `metadata.name=a,spec.x!=b`. A path outside `supported` is refused."""
    terms = [term for term in _split_escaped(text) if term]
    return FieldSelector(tuple(_parse_field_requirement(term, supported) for term in terms))


def _parse_field_requirement(term: str, supported: frozenset[str] | None) -> FieldRequirement:
    match = re.fullmatch(r"(?P<path>[^=!]*)(?P<operator>!=|==|=)(?P<value>.*)", term, re.DOTALL)
    if match is None:
        raise FieldSelectorError(f"invalid selector: '{term}'; can't understand '{term}'")
    path = match["path"].strip()
    if supported is not None and path not in supported:
        raise FieldSelectorError(f"field label not supported: {path}")
    return FieldRequirement(path, match["operator"] != "!=", _unescape(match["value"]))


def _split_escaped(text: str) -> list[str]:
    return [part.replace("\0", "\\,") for part in text.replace("\\,", "\0").split(",")]


def _unescape(value: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", value)
