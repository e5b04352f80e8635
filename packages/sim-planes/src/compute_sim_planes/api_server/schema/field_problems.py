"""A validation problem of one field, with the message of a real API server.

All validation returns these values; the HTTP layer turns a list of them into a 422 `Status` with
causes. Users read the messages, and contract tests compare them with a real server's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import override

from compute_sim_planes.json_types import JsonObject, JsonValue


class ProblemKind(StrEnum):
    """The kind of problem; its text is the `reason` of a cause in a `Status`."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    TYPE_INVALID = "FieldValueTypeInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    DUPLICATE = "FieldValueDuplicate"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"


_WORDS = {
    ProblemKind.REQUIRED: "Required value",
    ProblemKind.INVALID: "Invalid value",
    ProblemKind.TYPE_INVALID: "Invalid value",
    ProblemKind.NOT_SUPPORTED: "Unsupported value",
    ProblemKind.DUPLICATE: "Duplicate value",
    ProblemKind.FORBIDDEN: "Forbidden",
    ProblemKind.TOO_LONG: "Too long",
    ProblemKind.TOO_MANY: "Too many",
}
# The value is not repeated: it is absent, secret or too large.
_WITHOUT_VALUE = frozenset({ProblemKind.REQUIRED, ProblemKind.FORBIDDEN, ProblemKind.TOO_LONG})


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem of one field; `message` is the text after the field's path."""

    path: str
    kind: ProblemKind
    detail: str = ""
    value: JsonValue = ""
    shows_value: bool = True

    @property
    def message(self) -> str:
        """The message of a cause: the kind as text, the value where allowed, the detail."""
        words = _WORDS[self.kind]
        if self.shows_value and self.kind not in _WITHOUT_VALUE:
            words = f"{words}: {_render(self.value)}"
        return f"{words}: {self.detail}" if self.detail else words

    @override
    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def cause(self) -> JsonObject:
        """The entry in `details.causes` of a `Status`."""
        return {"reason": self.kind.value, "message": self.message, "field": self.path}


def join_problems(problems: list[FieldProblem]) -> str:
    """All problems in one line, as in the message of a `Status`: duplicates removed, several in
    brackets.
    """
    texts = list(dict.fromkeys(str(problem) for problem in problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def required(path: str, detail: str = "") -> FieldProblem:
    return FieldProblem(path, ProblemKind.REQUIRED, detail)


def invalid(path: str, value: JsonValue, detail: str) -> FieldProblem:
    return FieldProblem(path, ProblemKind.INVALID, detail, value)


def forbidden(path: str, detail: str) -> FieldProblem:
    return FieldProblem(path, ProblemKind.FORBIDDEN, detail)


def not_supported(path: str, value: JsonValue, supported: list[str]) -> FieldProblem:
    quoted = ", ".join(json.dumps(text, ensure_ascii=False) for text in supported)
    return FieldProblem(path, ProblemKind.NOT_SUPPORTED, f"supported values: {quoted}", value)


def too_long(path: str, limit: int) -> FieldProblem:
    return FieldProblem(path, ProblemKind.TOO_LONG, f"may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> FieldProblem:
    return FieldProblem(path, ProblemKind.TOO_MANY, f"must have at most {limit} items", count)


def duplicate(path: str, value: JsonValue) -> FieldProblem:
    return FieldProblem(path, ProblemKind.DUPLICATE, "", value)


def _render(value: JsonValue) -> str:
    if value is None:
        return '"null"'
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
