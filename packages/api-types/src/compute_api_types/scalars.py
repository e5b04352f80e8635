"""The field types of `docs/spec/api.md` 1: the values a model takes and the CRD schema of each.

They are markers for `Annotated`, which give pydantic a validator (compiled, no Python call per
value but for list keys) and a schema. Pydantic's own schemas of these types are not structural, and
an API server would refuse them; `crd.py` does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Protocol, TypeAlias, TypeVar

from pydantic import Field

from compute_api_types.quantity import PATTERN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

# Keys of hints that `crd.py` consumes; they never reach a CRD.
REQUIRED_HINT: Final = "x-crd-required"
DEFAULT_HINT: Final = "x-crd-default"


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer of 32 or 64 bits; the schema has the format and no bounds but those asked for."""

    bits: int
    minimum: int | None = None
    maximum: int | None = None
    counts: bool = False
    """Required by the schema with default 0: zeros are data (api.md 14, trap 1)."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        limit = 2 ** (self.bits - 1)
        lowest = -limit if self.minimum is None else self.minimum
        highest = limit - 1 if self.maximum is None else self.maximum
        return core_schema.int_schema(ge=lowest, le=highest, strict=True)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema: JsonSchemaValue = {"type": "integer", "format": f"int{self.bits}"}
        if self.minimum is not None:
            schema["minimum"] = self.minimum
        if self.maximum is not None:
            schema["maximum"] = self.maximum
        if self.counts:
            schema |= {REQUIRED_HINT: True, DEFAULT_HINT: 0}
        return schema


@dataclass(frozen=True, slots=True)
class NumberOrText:
    """An integer or a string that keeps its JSON type: `8080` and `"8080"` differ (trap 5)."""

    allowed: str
    pattern: str | None = None

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        # The API server keeps no larger integer: beyond 64 bits it comes back as a float.
        number = core_schema.int_schema(ge=-(2**63), le=2**63 - 1, strict=True)
        text = core_schema.str_schema(pattern=self.pattern, strict=True)
        # One error for the field; by default each branch has its own, with itself in the path.
        return core_schema.union_schema(
            [number, text],
            mode="left_to_right",
            custom_error_type="number_or_text",
            custom_error_message=self.allowed,
        )

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema: JsonSchemaValue = {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
        }
        if self.pattern is not None:
            schema["pattern"] = self.pattern
        return schema


@dataclass(frozen=True, slots=True)
class DateTime:
    """A time as text: conditions of others are copied to the byte, so nothing normalises it."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.custom_error_schema(
            core_schema.str_schema(pattern=DATE_TIME_PATTERN, strict=True),
            custom_error_type="date_time",
            custom_error_message="must be an RFC 3339 time such as 1970-01-01T00:00:00Z",
        )

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "format": "date-time"}


@dataclass(frozen=True, slots=True)
class KeyedByName:
    """A list of elements with distinct `name`; the API server merges and checks it by that key."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(_refuse_duplicates, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(core) | {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }


@dataclass(frozen=True, slots=True)
class Atomic:
    """A list that has one owner: server-side apply replaces it whole."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(core) | {"x-kubernetes-list-type": "atomic"}


@dataclass(frozen=True, slots=True)
class DistinctInSchema:
    """A list without duplicates for the API server, by `name` or by value, and not for a reader.

    An object that was stored before the schema asked for it may have some and must be read.
    """

    by_name: bool

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        if not self.by_name:
            return handler(core) | {"x-kubernetes-list-type": "set"}
        keys = {"x-kubernetes-list-map-keys": ["name"]}
        return handler(core) | {"x-kubernetes-list-type": "map"} | keys


@dataclass(frozen=True, slots=True)
class FilledBySchema:
    """An optional string that the API server fills in when it is absent.

    In a model absent stays None: a copy must not carry a value that its source does not have.
    """

    value: str
    required: bool = False

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        hints = {DEFAULT_HINT: self.value}
        return handler(core) | hints | ({REQUIRED_HINT: True} if self.required else {})


@dataclass(frozen=True, slots=True)
class Preserved:
    """An object of another writer: every field of it is kept, and none is checked."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def _refuse_duplicates(elements: tuple[_Named, ...]) -> tuple[_Named, ...]:
    # Most lists have one element, and this is the only Python code in the parse of a Workload.
    if len(elements) > 1:
        seen: set[str] = set()
        for index, element in enumerate(elements):
            if element.name in seen:
                raise _duplicate(index)
            seen.add(element.name)
    return elements


def _duplicate(index: int) -> Exception:
    from pydantic_core import PydanticCustomError

    return PydanticCustomError(
        "duplicate_key",
        "the name was seen before; names in this list must differ",
        {"index": index},
    )


DATE_TIME_PATTERN: Final = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)

Element = TypeVar("Element")

Int32: TypeAlias = Annotated[int, Integer(32)]
Int64: TypeAlias = Annotated[int, Integer(64)]
Counter32: TypeAlias = Annotated[int, Integer(32, counts=True)]
Counter64: TypeAlias = Annotated[int, Integer(64, counts=True)]
QuantityText: TypeAlias = Annotated[
    int | str,
    NumberOrText("must be a quantity: an integer, or text such as 500m, 2Gi or 1e3", PATTERN),
]
IntOrString: TypeAlias = Annotated[int | str, NumberOrText("must be an integer or a string")]
Timestamp: TypeAlias = Annotated[str, DateTime()]

# Lists are tuples and maps are typed read-only: a frozen model with a list in it is not frozen. A
# document has lists, which strictness would refuse for a tuple, hence `strict=False` on the
# sequence (not on its elements).
PlainList: TypeAlias = Annotated[tuple[Element, ...], Field(strict=False)]
FilledList: TypeAlias = Annotated[tuple[Element, ...], Field(strict=False, min_length=1)]
KeyedList: TypeAlias = Annotated[tuple[Element, ...], Field(strict=False), KeyedByName()]
FilledKeyedList: TypeAlias = Annotated[
    tuple[Element, ...], Field(strict=False, min_length=1), KeyedByName()
]
AtomicList: TypeAlias = Annotated[tuple[Element, ...], Field(strict=False), Atomic()]

if TYPE_CHECKING:
    ReadOnlyMap: TypeAlias = Mapping[str, Element]
else:
    # The same at run time: pydantic's own Mapping support would copy it through Python code.
    ReadOnlyMap = dict[str, Element]

OpaqueObject: TypeAlias = Annotated[ReadOnlyMap[object], Preserved()]
