"""The model of a structural schema, parsed once from a CRD.

Every write is pruned, defaulted and validated, so the JSON of a schema is parsed once into values
that are fast to walk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from compute_sim_planes.api_server.schema.rules import Rule, parse_rules
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    integer_at,
    object_at,
    string_at,
    strings_at,
)


class SchemaError(ValueError):
    """A schema that cannot be used; its CRD must be refused."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a value's size; None where the schema sets none."""

    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None

    @property
    def for_numbers(self) -> bool:
        return not (self.minimum is None and self.maximum is None and self.multiple_of is None)

    @property
    def for_objects(self) -> bool:
        return not (self.min_properties is None and self.max_properties is None)


@dataclass(frozen=True, slots=True)
class Combinations:
    """Schemas of which all, some, exactly one or none must hold."""

    all_of: tuple[Schema, ...] = ()
    any_of: tuple[Schema, ...] = ()
    one_of: tuple[Schema, ...] = ()
    none_of: Schema | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.all_of or self.any_of or self.one_of or self.none_of)


@dataclass(frozen=True, slots=True)
class Schema:
    """One node. Empty `types` allow any type; `additional` None means that no further key is
    declared.
    """

    types: tuple[str, ...] = ()
    format: str = ""
    nullable: bool = False
    properties: dict[str, Schema] = field(default_factory=dict[str, "Schema"])
    additional: Schema | None = None
    items: Schema | None = None
    required: tuple[str, ...] = ()
    enum: tuple[JsonValue, ...] = ()
    pattern: re.Pattern[str] | None = None
    pattern_text: str = ""
    bounds: Bounds = Bounds()
    combinations: Combinations = Combinations()
    default: JsonValue = None
    description: str = ""
    preserves_unknown: bool = False
    is_int_or_string: bool = False
    is_embedded_resource: bool = False
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""
    rules: tuple[Rule, ...] = ()
    # Whether this node or one below it has rules; most schemas have none and are not walked.
    has_rules: bool = False

    @property
    def has_default(self) -> bool:
        """A default of null is no default: a real server drops it when it reads the CRD."""
        return self.default is not None

    def child(self, key: str) -> Schema | None:
        """The schema of a key; None where it is undeclared."""
        return self.properties.get(key, self.additional)


ANYTHING = Schema(preserves_unknown=True)


def parse_schema(document: JsonObject) -> Schema:
    """The node of a part of an `openAPIV3Schema`; an invalid pattern raises SchemaError."""
    pattern_text = string_at(document, "pattern")
    is_int_or_string = document.get("x-kubernetes-int-or-string") is True
    types = ("integer", "string") if is_int_or_string else _types(document)
    properties = {
        key: parse_schema(inner)
        for key, inner in object_at(document, "properties").items()
        if isinstance(inner, dict)
    }
    additional = _parse_additional(document.get("additionalProperties"))
    items = _parse_optional(document.get("items"))
    rules = parse_rules(document)
    below = (*properties.values(), additional, items)
    return Schema(
        types=types,
        format=string_at(document, "format"),
        nullable=document.get("nullable") is True,
        properties=properties,
        additional=additional,
        items=items,
        required=tuple(strings_at(document, "required")),
        enum=tuple(array_at(document, "enum")),
        pattern=compile_pattern(pattern_text) if pattern_text else None,
        pattern_text=pattern_text,
        bounds=_parse_bounds(document),
        combinations=_parse_combinations(document),
        default=document.get("default"),
        description=string_at(document, "description"),
        preserves_unknown=document.get("x-kubernetes-preserve-unknown-fields") is True,
        is_int_or_string=is_int_or_string,
        is_embedded_resource=document.get("x-kubernetes-embedded-resource") is True,
        list_type=string_at(document, "x-kubernetes-list-type"),
        list_map_keys=tuple(strings_at(document, "x-kubernetes-list-map-keys")),
        map_type=string_at(document, "x-kubernetes-map-type"),
        rules=rules,
        has_rules=bool(rules) or any(node is not None and node.has_rules for node in below),
    )


def compile_pattern(text: str) -> re.Pattern[str]:
    """A Go regular expression in Python's syntax: `$` matches only the end, classes are ASCII."""
    try:
        return re.compile(_END_OF_TEXT.sub(_translate_anchor, text), re.ASCII)
    except re.error as failure:
        raise SchemaError(f"compiling pattern {text!r}: {failure}") from failure


# Matches an escape, a character class or a bare `$`; only the last is rewritten.
_END_OF_TEXT = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


def _translate_anchor(match: re.Match[str]) -> str:
    return r"\Z" if match.group() == "$" else match.group().replace(r"\z", r"\Z")


def _types(document: JsonObject) -> tuple[str, ...]:
    text = string_at(document, "type")
    return (text,) if text else ()


def _parse_optional(value: JsonValue) -> Schema | None:
    return parse_schema(value) if isinstance(value, dict) else None


def _parse_additional(value: JsonValue) -> Schema | None:
    if value is True:
        return ANYTHING
    return _parse_optional(value)


def _parse_bounds(document: JsonObject) -> Bounds:
    return Bounds(
        minimum=_number_at(document, "minimum"),
        maximum=_number_at(document, "maximum"),
        exclusive_minimum=document.get("exclusiveMinimum") is True,
        exclusive_maximum=document.get("exclusiveMaximum") is True,
        multiple_of=_number_at(document, "multipleOf"),
        min_length=integer_at(document, "minLength"),
        max_length=integer_at(document, "maxLength"),
        min_items=integer_at(document, "minItems"),
        max_items=integer_at(document, "maxItems"),
        min_properties=integer_at(document, "minProperties"),
        max_properties=integer_at(document, "maxProperties"),
    )


def _parse_combinations(document: JsonObject) -> Combinations:
    return Combinations(
        all_of=_parse_all(array_at(document, "allOf")),
        any_of=_parse_all(array_at(document, "anyOf")),
        one_of=_parse_all(array_at(document, "oneOf")),
        none_of=_parse_optional(document.get("not")),
    )


def _parse_all(documents: list[JsonValue]) -> tuple[Schema, ...]:
    return tuple(parse_schema(inner) for inner in documents if isinstance(inner, dict))


def _number_at(document: JsonObject, key: str) -> float | None:
    value = document.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
