"""Validation of a value against a structural schema, with the messages of a real API server.

All problems are reported in the order of the schema, not only the first; after a wrong type the
content of that value is not checked, so that one mistake is not reported five times. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from compute_sim_planes.api_server.schema import field_problems as problems
from compute_sim_planes.api_server.schema.field_problems import FieldProblem, ProblemKind
from compute_sim_planes.api_server.schema.formats import STRING_FORMATS
from compute_sim_planes.api_server.schema.model import Bounds, Schema
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue

# The path that a real server gives for a rule without a single field.
NO_FIELD = "<nil>"


def validate(value: JsonValue, schema: Schema, path: str = "") -> Iterator[FieldProblem]:
    """Every problem of the value and of its content."""
    if value is None and schema.nullable:
        return
    if not _fits_type(value, schema.types):
        yield _wrong_type(path, ",".join(schema.types), type_name(value))
        return
    if schema.enum and not any(_is_same(value, allowed) for allowed in schema.enum):
        yield problems.not_supported(path, value, [_enum_text(text) for text in schema.enum])
    if not schema.combinations.is_empty:
        yield from _validate_combinations(value, schema, path)
    if isinstance(value, str):
        yield from _validate_string(value, schema, path)
    elif isinstance(value, dict):
        yield from _validate_object(value, schema, path)
    elif isinstance(value, list):
        yield from _validate_array(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _validate_number(value, schema, path)


def type_name(value: JsonValue) -> str:
    """The JSON schema type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            # A number that 64 bits cannot hold is decoded as a float.
            return "integer" if -(2**63) <= value < 2**63 else "number"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"


def _fits_type(value: JsonValue, types: tuple[str, ...]) -> bool:
    if not types:
        return value is not None
    name = type_name(value)
    if name in types or (name == "integer" and "number" in types):
        return True
    # 3.0 is an integer on the wire; 3.5 never is.
    return isinstance(value, float) and value.is_integer() and "integer" in types


def _wrong_type(path: str, expected: str, actual: str) -> FieldProblem:
    expected = expected or "object"
    detail = f'{path} in body must be of type {expected}: "{actual}"'
    return FieldProblem(path, ProblemKind.TYPE_INVALID, detail, actual)


def _is_same(value: JsonValue, other: JsonValue) -> bool:
    """JSON equality, where true is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _enum_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _in_body(path: str, value: JsonValue, rule: str) -> FieldProblem:
    return problems.invalid(path, value, f"{path} in body {rule}")


def _validate_string(value: str, schema: Schema, path: str) -> Iterator[FieldProblem]:
    bounds = schema.bounds
    if bounds.max_length is not None and len(value) > bounds.max_length:
        yield problems.too_long(path, bounds.max_length)
    if bounds.min_length is not None and len(value) < bounds.min_length:
        yield _in_body(path, value, f"should be at least {bounds.min_length} chars long")
    if schema.pattern is not None and schema.pattern.search(value) is None:
        yield _in_body(path, value, f"should match '{schema.pattern_text}'")
    is_valid = STRING_FORMATS.get(schema.format)
    if is_valid is not None and not is_valid(value):
        yield _wrong_type(path, schema.format, value)


def _validate_number(value: float, schema: Schema, path: str) -> Iterator[FieldProblem]:
    # A real server does not check number formats (int32, uint32, …), only bounds.
    if schema.bounds.for_numbers:
        yield from _validate_range(value, schema.bounds, path)


def _validate_range(value: float, bounds: Bounds, path: str) -> Iterator[FieldProblem]:
    low, high, step = bounds.minimum, bounds.maximum, bounds.multiple_of
    if low is not None and (value < low or (bounds.exclusive_minimum and value == low)):
        words = "greater than" if bounds.exclusive_minimum else "greater than or equal to"
        yield _in_body(path, value, f"should be {words} {low:g}")
    if high is not None and (value > high or (bounds.exclusive_maximum and value == high)):
        words = "less than" if bounds.exclusive_maximum else "less than or equal to"
        yield _in_body(path, value, f"should be {words} {high:g}")
    if step is not None and value % step != 0:
        yield _in_body(path, value, f"should be a multiple of {step:g}")


def _validate_array(value: JsonArray, schema: Schema, path: str) -> Iterator[FieldProblem]:
    bounds = schema.bounds
    if bounds.max_items is not None and len(value) > bounds.max_items:
        yield problems.too_many(path, len(value), bounds.max_items)
    if bounds.min_items is not None and len(value) < bounds.min_items:
        yield _in_body(path, len(value), f"should have at least {bounds.min_items} items")
    if schema.items is not None:
        for at, item in enumerate(value):
            yield from validate(item, schema.items, f"{path}[{at}]")
    if schema.list_type in {"map", "set"}:
        yield from _validate_uniqueness(value, schema, path)


def _validate_uniqueness(value: JsonArray, schema: Schema, path: str) -> Iterator[FieldProblem]:
    seen: dict[str, int] = {}
    for at, item in enumerate(value):
        identity = item if schema.list_type == "set" else list_map_key(item, schema)
        text = json.dumps(identity, sort_keys=True)
        seen[text] = seen.get(text, 0) + 1
        # Further duplicates of the same key are not reported.
        if seen[text] == 2:
            yield problems.duplicate(f"{path}[{at}]", identity)


def list_map_key(item: JsonValue, schema: Schema) -> JsonObject:
    """The key fields that an item of a list of type map has."""
    if not isinstance(item, dict):
        return {}
    return {key: item[key] for key in schema.list_map_keys if key in item}


def _validate_object(value: JsonObject, schema: Schema, path: str) -> Iterator[FieldProblem]:
    if schema.bounds.for_objects:
        yield from _validate_size(value, schema.bounds, path)
    prefix = f"{path}." if path else ""
    for key in schema.required:
        if key not in value:
            yield problems.required(f"{prefix}{key}")
    if schema.is_embedded_resource:
        yield from _validate_embedded(value, prefix)
    for key, inner in value.items():
        child = schema.child(key)
        if child is not None:
            yield from validate(inner, child, f"{prefix}{key}")


def _validate_size(value: JsonObject, bounds: Bounds, path: str) -> Iterator[FieldProblem]:
    if bounds.max_properties is not None and len(value) > bounds.max_properties:
        yield problems.too_many(path, len(value), bounds.max_properties)
    if bounds.min_properties is not None and len(value) < bounds.min_properties:
        rule = f"should have at least {bounds.min_properties} properties"
        yield _in_body(path, len(value), rule)


def _validate_embedded(value: JsonObject, prefix: str) -> Iterator[FieldProblem]:
    for key in ("apiVersion", "kind"):
        if key not in value:
            yield problems.required(f"{prefix}{key}", "must not be empty")
        elif value[key] == "":
            yield problems.invalid(f"{prefix}{key}", "", "must not be empty")


def _validate_combinations(value: JsonValue, schema: Schema, path: str) -> Iterator[FieldProblem]:
    combined = schema.combinations
    if combined.all_of:
        failed = [
            problem for part in combined.all_of for problem in _validate_part(value, part, path)
        ]
        yield from failed
        if failed:
            yield _broken_combination(path, "must validate all the schemas (allOf)")
    if combined.any_of:
        yield from _validate_any_of(value, combined.any_of, path)
    if combined.one_of:
        yield from _validate_one_of(value, combined.one_of, path)
    if combined.none_of is not None and not _validate_part(value, combined.none_of, path):
        yield _broken_combination(path, "must not validate the schema (not)")


def _validate_part(value: JsonValue, part: Schema, path: str) -> list[FieldProblem]:
    if value is None and not part.types:
        return []
    return list(validate(value, part, path))


def _validate_any_of(
    value: JsonValue, parts: tuple[Schema, ...], path: str
) -> Iterator[FieldProblem]:
    failures = [_validate_part(value, part, path) for part in parts]
    if all(failures):
        yield _broken_combination(path, "must validate at least one schema (anyOf)")
        yield from failures[0]


def _validate_one_of(
    value: JsonValue, parts: tuple[Schema, ...], path: str
) -> Iterator[FieldProblem]:
    failures = [_validate_part(value, part, path) for part in parts]
    valid = failures.count([])
    if valid == 1:
        return
    outcome = f"Found {valid} valid alternatives" if valid else "Found none valid"
    yield _broken_combination(path, f"must validate one and only one schema (oneOf). {outcome}")
    if not valid:
        yield from failures[0]


def _broken_combination(path: str, rule: str) -> FieldProblem:
    return problems.invalid(NO_FIELD, "", f'"{path}" {rule}')
