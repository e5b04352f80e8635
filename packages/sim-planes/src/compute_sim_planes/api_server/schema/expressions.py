"""CEL expressions of admission policies and schema rules, compiled and evaluated with cel-cpp.

An expression that does not compile raises, so that what has it is refused when it is stored, as on
a real server: stored, it could not be evaluated for any request. Functions are those of the
standard library and of the extensions for strings and optionals; Kubernetes' own libraries are
absent. The inputs have no declared types, so a mistyped name is an error of the evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

# Its stubs lack py.typed and import protobuf, which it does not require: mypy sees `Any`.
from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

# Name and expression of each variable that precedes an expression.
Variables: TypeAlias = tuple[tuple[str, str], ...]
# The names that an expression may read.
POLICY_INPUTS: Final = ("object", "oldObject", "request")
RULE_INPUTS: Final = ("self", "oldSelf")
_VARIABLE: Final = "variables."
# What precedes the library's own words in a message.
IN_ERROR: Final = "resulted in error: "


class ExpressionError(Exception):
    """An expression that does not compile, or that has no value for a request."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression."""

    text: str
    program: cel.Expression

    @property
    def type_name(self) -> str:
        """The type of its value; `dyn` where it depends on undeclared fields."""
        return str(self.program.return_type().name()).lower()


@lru_cache(maxsize=1024)
def compile_expression(
    text: str, variables: Variables = (), inputs: tuple[str, ...] = POLICY_INPUTS
) -> Expression:
    """Cached per process: every plane of a test gets the same policies."""
    try:
        return Expression(text, _environment(variables, inputs).compile(text))
    except RuntimeError as error:
        status = "INVALID_ARGUMENT"
        reason = str(error).removeprefix(f"{status}: ").removesuffix(f" [{status}]")
        raise ExpressionError(f"compilation failed: {reason}") from error


@lru_cache(maxsize=256)
def _environment(variables: Variables, inputs: tuple[str, ...]) -> cel.Env:
    """The declarations for an expression: each variable has the type of its own expression."""
    types: dict[str, cel.Type] = dict.fromkeys(inputs, cel.Type.DYN)
    for at, (name, text) in enumerate(variables):
        expression = compile_expression(text, variables[:at], inputs)
        types[f"{_VARIABLE}{name}"] = expression.program.return_type()
    # The version of the strings library in Kubernetes.
    extensions = [ext_strings.ExtStrings(2), ext_optional.ExtOptional()]
    return cel.NewEnv(variables=types, extensions=extensions)


class ExpressionInputs:
    """The values of a request that its expressions read.

    The first expression that reads a value converts it to CEL for all others, so one instance
    serves every policy that covers the request.
    """

    def __init__(
        self, values: Mapping[str, object], inputs: tuple[str, ...] = POLICY_INPUTS
    ) -> None:
        self._values = values
        self._activation = _environment((), inputs).Activation(values)

    def evaluate_variables(self, variables: Iterable[tuple[str, Expression]]) -> ExpressionInputs:
        """The inputs with the variables that have a value.

        A variable that fails is left out, so that only an expression that reads it fails too.
        """
        values = dict(self._values)
        for name, expression in variables:
            # New inputs convert the objects again, so they are made only where variables are read.
            inputs = ExpressionInputs(values) if _VARIABLE in expression.text else self
            with suppress(ExpressionError):
                values[f"{_VARIABLE}{name}"] = inputs.evaluate(expression)
        return ExpressionInputs(values) if len(values) > len(self._values) else self

    def evaluate(self, expression: Expression) -> object:
        result = expression.program.eval(self._activation)
        value: object = result.plain_value()
        if result.type() == cel.Type.ERROR:
            raise _failure(expression, str(value))
        return value

    def holds(self, expression: Expression) -> bool:
        value = self.evaluate(expression)
        if not isinstance(value, bool):
            raise _failure(expression, f"expected a bool, not {value!r}")
        return value


def _failure(expression: Expression, reason: str) -> ExpressionError:
    return ExpressionError(f"expression '{expression.text}' {IN_ERROR}{reason}")
