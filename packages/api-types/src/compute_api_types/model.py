"""The base of every model: frozen, camelCase on the wire, strict when built, tolerant when read.

*Build* is for what we write: an unknown field is our mistake. *Read* is for what others wrote: an
unknown field belongs to a newer release and is passed over; `write_back` keeps it in the stored
object. All refuse wrong types, because coercing `"80"` to 80 would change what a copy carries.
Nothing here knows a particular kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from compute_api_types.changes import UnknownPathError, WriteBack, merge, set_field
from compute_api_types.depth import TOO_DEEP, is_too_deep
from compute_api_types.problems import (
    FieldProblem,
    MalformedObjectError,
    ProblemKind,
    problems_of,
)

if TYPE_CHECKING:
    # Type checkers see pydantic's own, which gives constructors their signatures.
    from pydantic._internal._model_construction import ModelMetaclass as _ModelType

    from compute_api_types.wire import JsonObject, JsonValue
else:

    class _ModelType(type(BaseModel)):
        """Calls of a model raise an error of this package; validation inside a parse is no call."""

        def __call__(cls, *args, **kwargs):  # noqa: ANN204, ANN002, ANN003 - the caller's
            try:
                return super().__call__(*args, **kwargs)
            except ValidationError as error:
                problems = problems_of(error)
                raise MalformedObjectError(cls.__name__, problems, doing="building") from None


Extra: TypeAlias = Literal["ignore", "forbid"]


class Model(BaseModel, metaclass=_ModelType):
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

    def with_fields(self, changes: Mapping[str, object]) -> Self:
        """A copy with some fields as given, checked as a whole; the value None removes a field.

        A path has the names of the wire; an element of a list is chosen by its name or its index,
        a key of a map by itself: `spec.placements[texas].scaleSettings.minReplicas`,
        `metadata.labels[app]`. A value is JSON, a model, or a sequence of these.

        Raises:
            MalformedObjectError: when a path leads nowhere, or the result is no such object.
        """
        document = self.to_document()
        try:
            for path, value in changes.items():
                document = set_field(document, path, _to_json(value))
        except UnknownPathError as error:
            what = describe(type(self).__name__, document)
            raise MalformedObjectError(what, (error.problem,), doing="changing") from None
        return self._validate(document, extra="forbid", doing="changing")

    def write_back(self, found: Mapping[str, JsonValue]) -> WriteBack:
        """The document to send in place of `found`, from which this was read and then changed.

        Fields that this release does not know stay as they are, at any depth. Where an element
        cannot be recognised, because its list has no names and other elements came or went, its
        unknown fields are in `lost`; send the document all the same, or refuse.

        Raises:
            MalformedObjectError: when `found` is not such an object.
        """
        document = dict(found)
        return merge(document, self.read(document).to_document(), self.to_document())

    @classmethod
    def _validate(cls, document: object, *, extra: Extra, doing: str = "reading") -> Self:
        if not _is_document(document):
            problem = FieldProblem("", ProblemKind.INVALID, "must be an object")
            raise MalformedObjectError(cls.__name__, (problem,), doing=doing)
        try:
            return cls.model_validate(document, extra=extra, by_alias=True, by_name=False)
        except ValidationError as error:
            what = describe(cls.__name__, document)
            raise MalformedObjectError(what, problems_of(error), doing=doing) from None

    def to_document(self) -> JsonObject:
        """The document to send: camelCase, absent instead of null, status integers always there."""
        document: JsonObject = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return document


def _to_json(value: object) -> JsonValue:
    """A value of a change as JSON; whether it fits is for the validation of the whole."""
    if isinstance(value, Model):
        return value.to_document()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_to_json(element) for element in cast("Sequence[object]", value)]
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)
        return {str(key): _to_json(element) for key, element in members.items()}
    return cast("JsonValue", value)


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
