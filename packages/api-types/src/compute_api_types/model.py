"""The base of every model: frozen, camelCase on the wire, strict when built, tolerant when read.

*Build* is for what we write: an unknown field is our mistake. *Read* is for what others wrote: an
unknown field belongs to a newer release and is passed over. Both refuse wrong types, because
coercing `"80"` to 80 would change what a copy carries. Nothing here knows a particular kind.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from compute_api_types.depth import TOO_DEEP, is_too_deep
from compute_api_types.problems import (
    FieldProblem,
    MalformedObjectError,
    ProblemKind,
    problems_of,
)

if TYPE_CHECKING:
    from compute_api_types.wire import JsonObject

Extra: TypeAlias = Literal["ignore", "forbid"]


class Model(BaseModel):
    """Base of all models; building and reading are described in the module's docstring."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        # Python code builds with python names, documents carry the aliases.
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        # Building all validators takes longer than importing pydantic; each is built on first use.
        defer_build=True,
    )

    @classmethod
    def read(cls, document: object) -> Self:
        """The object a parsed document describes; fields we do not know are passed over.

        Raises:
            MalformedObjectError: when it is not such an object; it names the wrong fields.
        """
        return cls._validate(document, extra="ignore")

    @classmethod
    def read_json(cls, text: bytes | str) -> Self:
        """As `read`, from JSON text without a document in between: the fast path of a watch.

        Raises:
            MalformedObjectError: when it is not such an object, or no JSON.
        """
        if is_too_deep(text.encode() if isinstance(text, str) else text):
            problem = FieldProblem("", ProblemKind.INVALID, f"must not be {TOO_DEEP}")
            raise MalformedObjectError(cls.__name__, (problem,))
        try:
            return cls.model_validate_json(text, extra="ignore", by_alias=True, by_name=False)
        except ValidationError as error:
            what = describe(cls.__name__, _parsed(text))
            raise MalformedObjectError(what, problems_of(error)) from None

    @classmethod
    def build(cls, document: object) -> Self:
        """The object a document of our own describes; an unknown field is refused.

        Raises:
            MalformedObjectError: when it is not such an object; it names the wrong fields.
        """
        return cls._validate(document, extra="forbid")

    @classmethod
    def _validate(cls, document: object, *, extra: Extra) -> Self:
        if not _is_document(document):
            problem = FieldProblem("", ProblemKind.INVALID, "must be an object")
            raise MalformedObjectError(cls.__name__, (problem,))
        try:
            return cls.model_validate(document, extra=extra, by_alias=True, by_name=False)
        except ValidationError as error:
            what = describe(cls.__name__, document)
            raise MalformedObjectError(what, problems_of(error)) from None

    def to_document(self) -> JsonObject:
        """The document to send: camelCase, absent instead of null, status integers always there."""
        document: JsonObject = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return document


def _parsed(text: bytes | str) -> object:
    """The document once more, for its name in an error; None where it is no JSON at all."""
    with suppress(ValueError, RecursionError):
        parsed: object = json.loads(text)
        return parsed
    return None


def _is_document(value: object) -> bool:
    # An instance of the model itself would pass unchecked, and the callers take documents.
    return isinstance(value, dict)


def describe(kind: str, document: object) -> str:
    """Kind, namespace and name of a document that may be anything, for an error message."""
    match document:
        case {"metadata": {"namespace": str(namespace), "name": str(name)}}:
            name = f"{namespace}/{name}"
        case {"metadata": {"name": str(name)}}:
            pass
        case _:
            return kind
    # Namespace and name take 317 at most; a longer one is already part of the problem.
    return f"{kind} {name[:317]!r}"
