"""CEL rules of a schema (`x-kubernetes-validations`), parsed once from a CRD.

A rule sees one value as `self` and, if its text names `oldSelf`, the value in the stored object.
Such a transition rule is skipped where there is no stored value. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server.schema.expressions import (
    RULE_INPUTS,
    Expression,
    ExpressionError,
    ExpressionInputs,
    compile_expression,
)
from compute_sim_planes.json_types import JsonObject, objects_at, string_at

KEYWORD: Final = "x-kubernetes-validations"
# The reasons that a rule may state; without one it is the first.
REASONS: Final = (
    "FieldValueInvalid",
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueRequired",
)
_STRINGS: Final = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_OLD_SELF: Final = re.compile(r"\boldSelf\b")


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of `x-kubernetes-validations`."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str
    # Relative to the value, as it is appended to a path: `.maxReplicas`.
    field_path: str
    reads_old: bool

    def explain(self, inputs: ExpressionInputs) -> str:
        """The message: a message expression without a usable value falls back to the fixed one."""
        if self.message_expression is not None:
            try:
                message = str(inputs.evaluate(self.message_expression)).strip()
            except ExpressionError:
                message = ""
            if message and "\n" not in message:
                return message
        return self.message or f"failed rule: {self.expression.text.strip()}"

    @property
    def title(self) -> str:
        """What names the rule in an error of its evaluation."""
        return self.message or self.expression.text.strip()


def parse_rules(schema: JsonObject) -> tuple[Rule, ...]:
    """The rules of one node; raises `ExpressionError` where one does not compile."""
    return tuple(_parse_rule(document) for document in objects_at(schema, KEYWORD))


def without_strings(text: str) -> str:
    """An expression with empty string literals, so that a name in one is not taken for a field."""
    return _STRINGS.sub("''", text)


def reads_old_self(text: str) -> bool:
    return _OLD_SELF.search(without_strings(text)) is not None


def compile_rule(text: str) -> Expression:
    return compile_expression(text, (), RULE_INPUTS)


def _parse_rule(document: JsonObject) -> Rule:
    text, message_text = string_at(document, "rule"), string_at(document, "messageExpression")
    field_path = string_at(document, "fieldPath").strip()
    return Rule(
        expression=compile_rule(text),
        message=string_at(document, "message").strip(),
        message_expression=compile_rule(message_text) if message_text else None,
        reason=string_at(document, "reason") or REASONS[0],
        field_path=field_path,
        reads_old=reads_old_self(text),
    )
