"""Field problems of a document that cannot be read as its kind: path, kind, what is allowed.

Kinds are the words of `docs/spec/api.md` 12.1, so that a user reads the same text from the schema
and from a rule. This module translates pydantic's errors and shows no value: values can be secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from compute_api_types.errors import ApiTypesError

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

# Fields that hold maps: what follows them in a path is a key, written `[key]` as Kubernetes does.
MAP_FIELDS: Final = frozenset(
    {"annotations", "labels", "limits", "matchLabels", "requests", "topology"}
)

# A key can be as long as a tenant likes; a path is for reading.
_LONGEST_KEY: Final = 64

# A document of a megabyte can be wrong in every line; the list of problems is cut here.
MOST_PROBLEMS: Final = 100


class ProblemKind(StrEnum):
    """The part of the vocabulary of api.md 12.1 that a schema can find."""

    REQUIRED = "Required"
    INVALID = "Invalid"
    NOT_SUPPORTED = "NotSupported"
    FORBIDDEN = "Forbidden"
    DUPLICATE = "Duplicate"


_TEXTS: Final = {
    ProblemKind.REQUIRED: "Required value",
    ProblemKind.INVALID: "Invalid value",
    ProblemKind.NOT_SUPPORTED: "Unsupported value",
    ProblemKind.FORBIDDEN: "Forbidden",
    ProblemKind.DUPLICATE: "Duplicate value",
}

_KINDS: Final = {
    "missing": ProblemKind.REQUIRED,
    "extra_forbidden": ProblemKind.FORBIDDEN,
    "literal_error": ProblemKind.NOT_SUPPORTED,
    "duplicate_key": ProblemKind.DUPLICATE,
}

# What is allowed, in the words of YAML instead of pydantic's dictionaries and tuples. An error that
# is not listed keeps pydantic's text.
_DETAILS: Final = {
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "extra_forbidden": "the field is unknown",
    "greater_than_equal": "must be at least {ge}",
    "int_type": "must be an integer",
    "less_than_equal": "must be at most {le}",
    "literal_error": "supported values: {expected}",
    "missing": "the field must be set",
    "model_type": "must be an object",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "string_type": "must be a string",
    "too_short": "must not be empty",
    "tuple_type": "must be a list",
}


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One field that cannot be read, and what would be allowed there."""

    path: str
    kind: ProblemKind
    detail: str

    @property
    def text(self) -> str:
        """One line: path, kind of problem, what is allowed."""
        where = f"{self.path}: " if self.path else ""
        return f"{where}{_TEXTS[self.kind]}: {self.detail}"


class MalformedObjectError(ApiTypesError):
    """What was given is no object of its kind; `problems` has the wrong fields."""

    def __init__(
        self, what: str, problems: Sequence[FieldProblem], *, doing: str = "reading"
    ) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{doing} {what}: {first.text}{more}")
        self.what: Final = what
        self.problems: Final = tuple(problems)


def problems_of(error: ValidationError) -> tuple[FieldProblem, ...]:
    """Pydantic's errors as field problems, at most `MOST_PROBLEMS`, in document order."""
    # No input and no link in a message: the one may be a secret, the other is not ours.
    details = error.errors(include_url=False, include_input=False)[:MOST_PROBLEMS]
    return tuple(_problem(detail) for detail in details if not _is_echo(detail, details))


def _problem(detail: ErrorDetails) -> FieldProblem:
    kind = _KINDS.get(detail["type"], ProblemKind.INVALID)
    allowed = _DETAILS.get(detail["type"])
    text = allowed.format_map(detail.get("ctx", {})) if allowed else detail["msg"]
    return FieldProblem(derive_path(_location(detail)), kind, text)


def _location(detail: ErrorDetails) -> tuple[int | str, ...]:
    """The path of an error; a duplicate is reported for the whole list, so its index is added."""
    index = detail.get("ctx", {}).get("index") if detail["type"] == "duplicate_key" else None
    return (*detail["loc"], index) if isinstance(index, int) else detail["loc"]


def _is_echo(detail: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Whether an error only repeats others: a list of refused elements is also too short."""
    loc = detail["loc"]
    return detail["type"] == "too_short" and any(
        len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc for other in details
    )


def derive_path(location: Sequence[int | str]) -> str:
    """The path as Kubernetes writes it: `spec.containers[0].env[1].name`, `labels[app]`."""
    path = ""
    before: int | str = ""
    for step in location:
        if isinstance(step, int) or before in MAP_FIELDS:
            path += f"[{_shown(step)}]"
        else:
            path += f".{_shown(step)}" if path else _shown(step)
        before = step
    return path


def _shown(step: int | str) -> str:
    text = "".join(char if char.isprintable() else "?" for char in str(step))
    return text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]}..."
