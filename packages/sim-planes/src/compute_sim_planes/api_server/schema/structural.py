"""Checks that the schema of a CRD is structural, with the messages of a real API server.

Only a structural schema can be pruned, defaulted and merged unambiguously. CEL rules that cannot be
evaluated are refused too: a rule that is silently skipped would let tests pass that fail on a real
plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import orjson

from compute_sim_planes.api_server.schema import field_problems as problems
from compute_sim_planes.api_server.schema.field_problems import FieldProblem
from compute_sim_planes.api_server.schema.model import SchemaError, compile_pattern, parse_schema
from compute_sim_planes.api_server.schema.prune_and_default import prune
from compute_sim_planes.api_server.schema.rule_problems import rule_problems
from compute_sim_planes.api_server.schema.validation import validate
from compute_sim_planes.json_types import JsonObject, JsonValue, array_at, object_at, string_at

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
# A list of type map is merged by its keys, so a key must be a scalar that is always present.
_SCALARS = frozenset({"boolean", "integer", "number", "string"})
_FORBIDDEN_KEYWORDS = {
    "$ref": "$ref is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "deprecated": "deprecated is not supported",
    "discriminator": "discriminator is not supported",
    "id": "id is not supported",
    "patternProperties": "patternProperties is not supported",
    "readOnly": "readOnly is not supported",
    "writeOnly": "writeOnly is not supported",
    "xml": "xml is not supported",
}
_FORBIDDEN_WHEN_NESTED = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "this server evaluates no CEL rules in a combination",
}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def structural_problems(
    openapi_v3_schema: JsonObject, path: str = "spec.validation.openAPIV3Schema"
) -> list[FieldProblem]:
    """Why the schema cannot be used, in the order of a real server; empty when it can."""
    return list(_check(orjson.dumps(openapi_v3_schema), path))


@lru_cache(maxsize=256)
def _check(text: bytes, path: str) -> tuple[FieldProblem, ...]:
    """Cached per process: every plane of a test gets the same definitions."""
    schema: JsonObject = orjson.loads(text)
    problem_list = [*_check_root(schema, path), *_check_node(schema, path, "root")]
    if not problem_list:
        # Rules are compiled for a structural schema only, and needed to parse it.
        problem_list = list(_check_rules(schema, path))
    if not problem_list:
        problem_list = list(_check_defaults(schema, path, is_root=True))
    return tuple(sorted(problem_list, key=str))


def _check_root(schema: JsonObject, path: str) -> Iterator[FieldProblem]:
    if schema.get("type") not in {None, "", "object"}:
        yield problems.invalid(f"{path}.type", schema.get("type"), "must be object at the root")
    if "additionalProperties" in schema:
        yield problems.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if schema.get("nullable") is True:
        yield problems.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    metadata = object_at(schema, "properties", "metadata")
    if set(object_at(metadata, "properties")) - {"name", "generateName"}:
        detail = (
            "must not specify anything other than name and generateName, "
            "but metadata is implicitly specified"
        )
        yield problems.forbidden(f"{path}.properties[metadata]", detail)
    for key in ("apiVersion", "kind"):
        declared = object_at(schema, "properties").get(key)
        if isinstance(declared, dict) and declared.get("type") != "string":
            where = f"{path}.properties[{key}].type"
            yield problems.invalid(where, string_at(declared, "type"), "must be string")


def _check_node(schema: JsonObject, path: str, level: str) -> Iterator[FieldProblem]:
    yield from _check_type(schema, path, level)
    yield from _check_keywords(schema, path)
    yield from _check_list_type(schema, path)
    yield from _check_combinations(schema, path)
    for key, inner in object_at(schema, "properties").items():
        if isinstance(inner, dict):
            yield from _check_node(inner, f"{path}.properties[{key}]", "field")
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        yield from _check_node(additional, f"{path}.additionalProperties", "field")
    items = schema.get("items")
    if isinstance(items, dict):
        yield from _check_node(items, f"{path}.items", "item")


_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def _check_type(schema: JsonObject, path: str, level: str) -> Iterator[FieldProblem]:
    declared = string_at(schema, "type")
    is_free = (
        schema.get("x-kubernetes-int-or-string") is True
        or schema.get("x-kubernetes-preserve-unknown-fields") is True
    )
    if not declared and not is_free:
        yield problems.required(f"{path}.type", _EMPTY_TYPE[level])
    if declared and declared not in _TYPES:
        yield problems.not_supported(f"{path}.type", declared, list(_TYPES))
    if declared == "array" and not isinstance(schema.get("items"), dict):
        yield problems.required(f"{path}.items", "must be specified")
    if schema.get("x-kubernetes-embedded-resource") is True and declared != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield problems.invalid(f"{path}.type", declared, detail)


def _check_keywords(schema: JsonObject, path: str) -> Iterator[FieldProblem]:
    for keyword, detail in _FORBIDDEN_KEYWORDS.items():
        if keyword in schema:
            yield problems.forbidden(f"{path}.{keyword}", detail)
    if schema.get("additionalProperties") is False:
        where = f"{path}.additionalProperties"
        yield problems.forbidden(where, "additionalProperties cannot be set to false")
    if "properties" in schema and "additionalProperties" in schema:
        detail = "additionalProperties and properties are mutual exclusive"
        yield problems.forbidden(f"{path}.additionalProperties", detail)
    if schema.get("uniqueItems") is True:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield problems.forbidden(f"{path}.uniqueItems", detail)
    yield from _check_pattern(schema, path)


def _check_pattern(schema: JsonObject, path: str) -> Iterator[FieldProblem]:
    pattern = string_at(schema, "pattern")
    try:
        compile_pattern(pattern)
    except SchemaError as failure:
        detail = f"must be a valid regular expression, but isn't: {failure.__cause__}"
        yield problems.invalid(f"{path}.pattern", pattern, detail)


def _check_list_type(schema: JsonObject, path: str) -> Iterator[FieldProblem]:
    list_type = string_at(schema, "x-kubernetes-list-type")
    map_type = string_at(schema, "x-kubernetes-map-type")
    keys = array_at(schema, "x-kubernetes-list-map-keys")
    if list_type not in {"", "atomic", "map", "set"}:
        where = f"{path}.x-kubernetes-list-type"
        yield problems.not_supported(where, list_type, ["atomic", "map", "set"])
    if list_type and schema.get("type") != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        yield problems.invalid(f"{path}.type", schema.get("type"), detail)
    if map_type not in {"", "atomic", "granular"}:
        where = f"{path}.x-kubernetes-map-type"
        yield problems.not_supported(where, map_type, ["atomic", "granular"])
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield problems.invalid(f"{path}.x-kubernetes-list-type", list_type, detail)
    if list_type == "map":
        yield from _check_map_keys(schema, keys, path)


def _check_map_keys(schema: JsonObject, keys: list[JsonValue], path: str) -> Iterator[FieldProblem]:
    items = object_at(schema, "items")
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield problems.required(f"{path}.x-kubernetes-list-map-keys", detail)
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield problems.invalid(f"{path}.items.type", items.get("type"), detail)
    for key in (text for text in keys if isinstance(text, str)):
        declared = object_at(items, "properties", key)
        where = f"{path}.items.properties[{key}]"
        if string_at(declared, "type") not in _SCALARS:
            detail = "entries must all be names of item properties of scalar type"
            yield problems.invalid(f"{path}.x-kubernetes-list-map-keys", list(keys), detail)
        elif "default" not in declared and key not in array_at(items, "required"):
            detail = (
                "this property is in x-kubernetes-list-map-keys, "
                "so it must have a default or be a required property"
            )
            yield problems.required(f"{where}.default", detail)


def _check_combinations(schema: JsonObject, path: str) -> Iterator[FieldProblem]:
    for keyword in ("allOf", "anyOf", "oneOf"):
        parts = array_at(schema, keyword)
        if keyword == "anyOf" and parts == _INT_OR_STRING and _is_int_or_string(schema):
            continue
        for at, part in enumerate(parts):
            if isinstance(part, dict):
                yield from _check_nested(part, f"{path}.{keyword}[{at}]", schema)
    negated = schema.get("not")
    if isinstance(negated, dict):
        yield from _check_nested(negated, f"{path}.not", schema)


def _is_int_or_string(schema: JsonObject) -> bool:
    return schema.get("x-kubernetes-int-or-string") is True


def _check_nested(part: JsonObject, path: str, outer: JsonObject) -> Iterator[FieldProblem]:
    for keyword, detail in _FORBIDDEN_WHEN_NESTED.items():
        if keyword in part and part[keyword] not in (False, "", None):
            yield problems.forbidden(f"{path}.{keyword}", detail)
    yield from _check_pattern(part, path)
    for key, inner in object_at(part, "properties").items():
        declared = object_at(outer, "properties").get(key)
        if not isinstance(inner, dict):
            continue
        if key == "metadata":
            detail = "must not be specified in a nested context"
            yield problems.forbidden(f"{path}.properties[metadata]", detail)
        elif not isinstance(declared, dict):
            # Declared only inside a combination: pruning drops the field, so the rule could never
            # hold.
            where = f"{_outside(path)}.properties[{key}]"
            yield problems.required(where, f"because it is defined in {path}.properties[{key}]")
        else:
            yield from _check_nested(inner, f"{path}.properties[{key}]", declared)
    yield from _check_combinations(part, path)


def _outside(path: str) -> str:
    return path.rpartition(".")[0]


def _check_rules(schema: JsonObject, path: str, uncorrelatable: str = "") -> Iterator[FieldProblem]:
    yield from rule_problems(schema, path, uncorrelatable)
    for key, inner in object_at(schema, "properties").items():
        if isinstance(inner, dict):
            yield from _check_rules(inner, f"{path}.properties[{key}]", uncorrelatable)
    for keyword in ("items", "additionalProperties"):
        inner = schema.get(keyword)
        if isinstance(inner, dict):
            # Only elements with keys have a counterpart in the stored object.
            has_keys = keyword != "items" or schema.get("x-kubernetes-list-type") == "map"
            outside = uncorrelatable or ("" if has_keys else path)
            yield from _check_rules(inner, f"{path}.{keyword}", outside)


def _check_defaults(schema: JsonObject, path: str, *, is_root: bool) -> Iterator[FieldProblem]:
    default = schema.get("default")
    if default is not None and not is_root:
        node = parse_schema(schema)
        yield from validate(default, node, f"{path}.default")
        if isinstance(default, dict) and prune(default, node)[1]:
            yield problems.invalid(f"{path}.default", default, "must not have unknown fields")
    for key, inner in object_at(schema, "properties").items():
        if isinstance(inner, dict):
            yield from _check_defaults(inner, f"{path}.properties[{key}]", is_root=False)
    for keyword in ("items", "additionalProperties"):
        inner = schema.get(keyword)
        if isinstance(inner, dict):
            yield from _check_defaults(inner, f"{path}.{keyword}", is_root=False)
