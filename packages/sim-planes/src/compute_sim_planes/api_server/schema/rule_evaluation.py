"""Evaluation of the CEL rules of a schema over an object, with the stored one beside it.

A rule that a value broke before and that does not compare the two is tolerated while the value is
unchanged, and becomes a warning: an object that was stored before the rule came stays writable.
Elements of a list are compared by their keys; in a list without keys only the whole list is. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from compute_sim_planes.api_server.schema.expressions import (
    IN_ERROR,
    RULE_INPUTS,
    ExpressionError,
    ExpressionInputs,
)
from compute_sim_planes.api_server.schema.field_problems import FieldProblem, ProblemKind
from compute_sim_planes.api_server.schema.model import Schema
from compute_sim_planes.api_server.schema.rules import Rule
from compute_sim_planes.api_server.schema.validation import NO_FIELD, list_map_key
from compute_sim_planes.json_types import JsonObject, JsonValue

# Such problems leave values that a rule cannot be evaluated for.
_BLOCKING: Final = frozenset(
    {
        ProblemKind.NOT_SUPPORTED,
        ProblemKind.REQUIRED,
        ProblemKind.TOO_LONG,
        ProblemKind.TOO_MANY,
        ProblemKind.TYPE_INVALID,
    }
)
NOT_CHECKED: Final = FieldProblem(
    NO_FIELD,
    ProblemKind.INVALID,
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
    None,
)


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that does not hold; tolerated where its value was stored like that."""

    problem: FieldProblem
    is_tolerated: bool


class _Pair(NamedTuple):
    """The stored and the new value of the nearest node that has a counterpart."""

    before: JsonValue
    desired: JsonValue
    # Below the element of a list without keys: nothing there has a counterpart of its own.
    is_last: bool = False

    def below(self, before: JsonValue, desired: JsonValue) -> _Pair:
        return self if self.is_last else _Pair(before, desired)

    def is_same(self) -> bool:
        return _canonical(self.before) == _canonical(self.desired)


def prevents_rules(problems: list[FieldProblem]) -> bool:
    """Whether rules are left out, because other problems come first."""
    return any(problem.kind in _BLOCKING for problem in problems)


def check_rules(
    desired: JsonObject, schema: Schema, before: JsonObject | None
) -> Iterator[BrokenRule]:
    """Every rule that the object breaks; `before` is None for a new object."""
    return _check_node(desired, schema, before, _Pair(before, desired), "")


def _check_node(
    value: JsonValue, schema: Schema, old: JsonValue, pair: _Pair, path: str
) -> Iterator[BrokenRule]:
    if value is None or not schema.has_rules:
        return
    if schema.rules:
        yield from _check_value(value, schema, old, pair, path)
    if isinstance(value, list) and schema.items is not None:
        counterparts = _by_key(old, schema)
        for at, item in enumerate(value):
            then = counterparts.get(_element_key(item, schema))
            has_keys = schema.list_type == "map"
            beside = pair.below(then, item) if has_keys else pair._replace(is_last=True)
            yield from _check_node(item, schema.items, then, beside, f"{path}[{at}]")
    elif isinstance(value, dict):
        stored = old if isinstance(old, dict) else {}
        for key, inner in value.items():
            child = schema.child(key)
            if child is not None:
                then = stored.get(key)
                where = _below(path, key) if key in schema.properties else f"{path}[{key}]"
                yield from _check_node(inner, child, then, pair.below(then, inner), where)


def _check_value(
    value: JsonValue, schema: Schema, old: JsonValue, pair: _Pair, path: str
) -> Iterator[BrokenRule]:
    values: JsonObject = {"self": value} if old is None else {"self": value, "oldSelf": old}
    inputs = ExpressionInputs(values, RULE_INPUTS)
    for rule in schema.rules:
        if rule.reads_old and old is None:
            continue
        try:
            holds = inputs.holds(rule.expression)
        except ExpressionError as error:
            reason = str(error).rpartition(IN_ERROR)[2]
            detail = f"{reason} evaluating rule: {rule.title}"
            where, declared = path or NO_FIELD, ",".join(schema.types)
            problem = FieldProblem(where, ProblemKind.INVALID, detail, declared)
            yield BrokenRule(problem, is_tolerated=False)
            continue
        if not holds:
            problem = _refuse(rule, value, path, rule.explain(inputs))
            yield BrokenRule(problem, is_tolerated=not rule.reads_old and pair.is_same())


def _refuse(rule: Rule, value: JsonValue, path: str, detail: str) -> FieldProblem:
    where = f"{path}{rule.field_path}" if path else rule.field_path.removeprefix(".") or NO_FIELD
    # The content of an object or a list would hide the reason.
    is_scalar = not isinstance(value, dict | list)
    return FieldProblem(where, ProblemKind(rule.reason), detail, value, shows_value=is_scalar)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _by_key(old: JsonValue, schema: Schema) -> dict[bytes, JsonValue]:
    """The stored elements by key, the first of each; empty for a list without keys."""
    elements: dict[bytes, JsonValue] = {}
    if schema.list_type == "map" and isinstance(old, list):
        for item in old:
            elements.setdefault(_element_key(item, schema), item)
    return elements


def _element_key(item: JsonValue, schema: Schema) -> bytes:
    return _canonical(list_map_key(item, schema))


def _canonical(value: JsonValue) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
