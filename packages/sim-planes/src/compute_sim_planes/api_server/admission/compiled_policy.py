"""The compiled expressions of a ValidatingAdmissionPolicy, and their evaluation for a request.

Every stored expression is evaluated: match conditions, variables, validations and message
expressions. A policy with a field that this server does not evaluate is invalid, because it would
admit requests that a real server refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.schema.expressions import (
    Expression,
    ExpressionError,
    ExpressionInputs,
    Variables,
    compile_expression,
)
from compute_sim_planes.api_server.schema.field_problems import FieldProblem
from compute_sim_planes.json_types import JsonObject, objects_at, string_at

_NOT_EVALUATED: Final = ("paramKind", "auditAnnotations")
_DEFAULT_REASON: Final = "Invalid"


class InvalidPolicyError(Exception):
    """A policy that cannot be evaluated."""

    def __init__(self, problem: FieldProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True, slots=True)
class FailedValidation:
    """Why a policy refuses a request; `reason` is one of the four that the API allows."""

    message: str
    reason: str = _DEFAULT_REASON


@dataclass(frozen=True, slots=True)
class Validation:
    """One entry of `validations`."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str

    def explain(self, inputs: ExpressionInputs) -> str:
        """The message: a message expression without a usable value falls back to the fixed one."""
        if self.message_expression is not None:
            try:
                message = str(inputs.evaluate(self.message_expression)).strip()
            except ExpressionError:
                message = ""
            if message and "\n" not in message:
                return message
        return self.message or f"failed expression: {self.expression.text.strip()}"


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy without its match constraints."""

    conditions: tuple[Expression, ...]
    variables: tuple[tuple[str, Expression], ...]
    validations: tuple[Validation, ...]
    fails_closed: bool

    def evaluate(self, inputs: ExpressionInputs) -> list[FailedValidation]:
        """The validations that refuse the request, in their order."""
        try:
            if not self._matches(inputs):
                return []
        except ExpressionError as error:
            return [FailedValidation(str(error))] if self.fails_closed else []
        extended = inputs.evaluate_variables(self.variables)
        return [failed for one in self.validations for failed in self._check(one, extended)]

    def _matches(self, inputs: ExpressionInputs) -> bool:
        """Whether all match conditions hold; a false one outweighs one that fails."""
        failure: ExpressionError | None = None
        for condition in self.conditions:
            try:
                if not inputs.holds(condition):
                    return False
            except ExpressionError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return True

    def _check(
        self, validation: Validation, inputs: ExpressionInputs
    ) -> Iterator[FailedValidation]:
        try:
            if not inputs.holds(validation.expression):
                yield FailedValidation(validation.explain(inputs), validation.reason)
        except ExpressionError as error:
            if self.fails_closed:
                yield FailedValidation(str(error))


def compile_policy(spec: JsonObject) -> CompiledPolicy:
    """Raises `InvalidPolicyError` for the first field that cannot be evaluated."""
    for name in _NOT_EVALUATED:
        if spec.get(name):
            detail = "this server does not evaluate it"
            raise InvalidPolicyError(field_problems.forbidden(f"spec.{name}", detail))
    conditions = tuple(
        _compile(condition, f"spec.matchConditions[{at}].expression", "bool")
        for at, condition in enumerate(objects_at(spec, "matchConditions"))
    )
    declared: Variables = ()
    variables: list[tuple[str, Expression]] = []
    for at, variable in enumerate(objects_at(spec, "variables")):
        path = f"spec.variables[{at}].expression"
        expression = _compile(variable, path, "", declared)
        if "optional_type" in expression.type_name:
            # The library converts no optional to a Python value.
            detail = "this server keeps no optional in a variable"
            raise InvalidPolicyError(field_problems.invalid(path, expression.text, detail))
        variables.append((string_at(variable, "name"), expression))
        declared = (*declared, (string_at(variable, "name"), expression.text))
    return CompiledPolicy(
        conditions=conditions,
        variables=tuple(variables),
        validations=tuple(
            _compile_validation(validation, f"spec.validations[{at}]", declared)
            for at, validation in enumerate(objects_at(spec, "validations"))
        ),
        fails_closed=string_at(spec, "failurePolicy") != "Ignore",
    )


def _compile_validation(document: JsonObject, path: str, variables: Variables) -> Validation:
    message = None
    if string_at(document, "messageExpression"):
        message = _compile(document, f"{path}.messageExpression", "string", variables)
    return Validation(
        expression=_compile(document, f"{path}.expression", "bool", variables),
        message=string_at(document, "message").strip(),
        message_expression=message,
        reason=string_at(document, "reason") or _DEFAULT_REASON,
    )


def _compile(
    document: JsonObject, path: str, type_name: str, variables: Variables = ()
) -> Expression:
    """The expression in the last field of `path`; an empty `type_name` allows every type."""
    text = string_at(document, path.rpartition(".")[2])
    try:
        expression = compile_expression(text, variables)
    except ExpressionError as error:
        raise InvalidPolicyError(field_problems.invalid(path, text, str(error))) from error
    if type_name not in {"", expression.type_name}:
        detail = f"must evaluate to {type_name}"
        raise InvalidPolicyError(field_problems.invalid(path, text, detail))
    return expression
