"""Why a CEL rule of a schema cannot be stored, with the paths of a real API server.

The library knows no types of a schema, so that a mistyped field would only fail, or pass, when an
object comes; the names after `self` and `oldSelf` are therefore looked up here. The cost of a rule
is not estimated: only a real server refuses one that its lists make too expensive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from compute_sim_planes.api_server.schema import field_problems as problems
from compute_sim_planes.api_server.schema.expressions import ExpressionError
from compute_sim_planes.api_server.schema.field_problems import FieldProblem
from compute_sim_planes.api_server.schema.rules import (
    KEYWORD,
    REASONS,
    compile_rule,
    reads_old_self,
    without_strings,
)
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at

# `self.a.b`, without the names of functions.
_FIELDS: Final = re.compile(r"\b(?:self|oldSelf)((?:\.[A-Za-z_]\w*\b(?!\s*\())+)")
_NOT_EVALUATED: Final = "this server does not evaluate it"


def rule_problems(
    schema: JsonObject, path: str, uncorrelatable: str = ""
) -> Iterator[FieldProblem]:
    """The problems of the rules of one node; `uncorrelatable` is the path of the list without keys
    that it is in, where no element has a counterpart in the stored object.
    """
    for at, rule in enumerate(objects_at(schema, KEYWORD)):
        where = f"{path}.{KEYWORD}[{at}]"
        form = list(_check_form(rule, schema, where))
        yield from form or _check_expressions(rule, schema, where, uncorrelatable)


def _check_form(rule: JsonObject, schema: JsonObject, where: str) -> Iterator[FieldProblem]:
    text, message = string_at(rule, "rule"), string_at(rule, "message")
    if not text.strip():
        yield problems.required(f"{where}.rule", "rule is not specified")
    if message and not message.strip():
        detail = "must be non-empty if specified"
        yield problems.invalid(f"{where}.message", message, detail)
    if "\n" in message.strip():
        yield problems.invalid(f"{where}.message", message, "must not contain line breaks")
    if "\n" in text.strip() and not message:
        detail = "message must be specified if rule contains line breaks"
        yield problems.required(f"{where}.message", detail)
    reason = string_at(rule, "reason")
    if reason and reason not in REASONS:
        yield problems.not_supported(f"{where}.reason", reason, sorted(REASONS))
    field_path = string_at(rule, "fieldPath")
    if field_path and not _is_declared(schema, field_path.strip()):
        yield problems.invalid(f"{where}.fieldPath", field_path, "must be a valid path")
    if "optionalOldSelf" in rule:
        yield problems.forbidden(f"{where}.optionalOldSelf", _NOT_EVALUATED)


def _check_expressions(
    rule: JsonObject, schema: JsonObject, where: str, uncorrelatable: str
) -> Iterator[FieldProblem]:
    for name, type_name in (("rule", "bool"), ("messageExpression", "string")):
        text = string_at(rule, name)
        if not text:
            continue
        try:
            expression = compile_rule(text)
        except ExpressionError as error:
            yield problems.invalid(f"{where}.{name}", text, str(error))
            continue
        if expression.type_name not in {"dyn", type_name}:
            detail = f"must evaluate to a {type_name}"
            yield problems.invalid(f"{where}.{name}", text, detail)
        for field in _undeclared(schema, text):
            detail = f"compilation failed: undefined field '{field}'"
            yield problems.invalid(f"{where}.{name}", text, detail)
    text = string_at(rule, "rule")
    if uncorrelatable and reads_old_self(text):
        detail = (
            "oldSelf cannot be used on the uncorrelatable portion of the schema within "
            f"{uncorrelatable}"
        )
        yield problems.invalid(f"{where}.rule", text, detail)


def _undeclared(schema: JsonObject, text: str) -> Iterator[str]:
    for match in _FIELDS.finditer(without_strings(text)):
        path = match[1]
        if not _is_declared(schema, path):
            yield path.removeprefix(".")


def _is_declared(schema: JsonObject, path: str) -> bool:
    """Whether a path of fields, `.a.b`, exists below a node; keys of a map always do."""
    if not path.startswith("."):
        return False
    for name in path[1:].split("."):
        declared = object_at(schema, "properties").get(name, schema.get("additionalProperties"))
        if not isinstance(declared, dict):
            return False
        schema = declared
    return True
