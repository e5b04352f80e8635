"""Field errors: what is wrong, where, and what is allowed, as values.

Kinds, texts and cause reasons are those of `docs/spec/api.md` 12.1. A detail is a sentence of ours;
whatever the user wrote goes into `value` and is rendered escaped and cut, so that a detail never
carries foreign text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from compute_api_types.validation.document import Amount
from compute_api_types.validation.rendering import quote_all, render

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compute_api_types.validation.document import Json, Path

Errors: TypeAlias = "Iterator[FieldError]"


class ErrorKind(StrEnum):
    """The seven kinds; the value is the reason of the cause on the wire."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    INTERNAL_ERROR = "InternalError"


_HEADINGS: Final = {
    ErrorKind.REQUIRED: "Required value",
    ErrorKind.INVALID: "Invalid value",
    ErrorKind.NOT_SUPPORTED: "Unsupported value",
    ErrorKind.FORBIDDEN: "Forbidden",
    ErrorKind.DUPLICATE: "Duplicate value",
    ErrorKind.NOT_FOUND: "Not found",
    ErrorKind.INTERNAL_ERROR: "Internal error",
}
_KINDS_WITHOUT_VALUE: Final = frozenset(
    {ErrorKind.REQUIRED, ErrorKind.FORBIDDEN, ErrorKind.INTERNAL_ERROR}
)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One violation; `value` is what was written, None where the kind shows none."""

    kind: ErrorKind
    path: Path
    value: Json | Amount
    detail: str

    @property
    def body(self) -> str:
        """The text without the path: the message of a cause."""
        parts = [_HEADINGS[self.kind]]
        if self.kind not in _KINDS_WITHOUT_VALUE:
            parts.append(
                render(self.value.written if isinstance(self.value, Amount) else self.value)
            )
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)

    @property
    def text(self) -> str:
        return f"{self.path.text}: {self.body}"


def required(path: Path, detail: str) -> FieldError:
    return FieldError(ErrorKind.REQUIRED, path, None, detail)


def invalid(path: Path, value: Json | Amount, detail: str) -> FieldError:
    return FieldError(ErrorKind.INVALID, path, value, detail)


def not_supported(path: Path, value: Json, supported: Sequence[str]) -> FieldError:
    detail = f"supported values: {quote_all(supported)}"
    return FieldError(ErrorKind.NOT_SUPPORTED, path, value, detail)


def forbidden(path: Path, detail: str) -> FieldError:
    return FieldError(ErrorKind.FORBIDDEN, path, None, detail)


def duplicate(path: Path, value: Json) -> FieldError:
    return FieldError(ErrorKind.DUPLICATE, path, value, "")


def not_found(path: Path, value: Json) -> FieldError:
    return FieldError(ErrorKind.NOT_FOUND, path, value, "")


def internal_error(path: Path, detail: str) -> FieldError:
    return FieldError(ErrorKind.INTERNAL_ERROR, path, None, detail)
