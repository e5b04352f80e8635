from __future__ import annotations

import pytest

from compute_sim_planes.api_server.schema.compiled import (
    CompiledSchema,
    ProblemKind,
    SchemaError,
    compile_schema,
    structural_problems,
)
from compute_sim_planes.json_types import JsonObject, JsonValue


def a_schema(**spec: JsonValue) -> CompiledSchema:
    """The schema of a kind with the given properties in its spec."""
    return compile_schema(
        {
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": {"type": "object", "properties": dict(spec)},
            },
        }
    )


def an_object(**spec: JsonValue) -> JsonObject:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": dict(spec),
    }


def problems_of(schema: CompiledSchema, document: JsonObject) -> list[str]:
    return [str(problem) for problem in schema.validate(document)]


def test_undeclared_fields_are_pruned_and_metadata_is_left_alone() -> None:
    schema = a_schema(size={"type": "object", "properties": {"cpu": {"type": "string"}}})
    document = an_object(size={"cpu": "1", "gpu": "2"}, colour="red")

    assert schema.prune(document)["spec"] == {"size": {"cpu": "1"}}
    assert schema.prune(document)["metadata"] == document["metadata"]
    assert schema.unknown_fields(document) == ["spec.colour", "spec.size.gpu"]


def test_pruning_leaves_its_argument_alone_and_shares_nothing_with_it() -> None:
    schema = a_schema(items={"type": "array", "items": {"type": "object", "properties": {}}})
    document = an_object(items=[{"x": 1}])

    pruned = schema.prune(document)

    assert document["spec"] == {"items": [{"x": 1}]}
    assert pruned["spec"] == {"items": [{}]}


def test_a_field_that_preserves_unknown_fields_keeps_them_but_prunes_inside_declared_ones() -> None:
    schema = a_schema(
        free={
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {}}},
        }
    )
    document = an_object(free={"known": {"gone": 1}, "kept": {"deep": [1]}})

    assert schema.prune(document)["spec"] == {"free": {"known": {}, "kept": {"deep": [1]}}}


def test_maps_with_a_value_schema_keep_all_keys() -> None:
    schema = a_schema(limits={"type": "object", "additionalProperties": {"type": "string"}})

    assert schema.prune(an_object(limits={"cpu": "1"}))["spec"] == {"limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"mode": "Auto"}),
        ({"mode": None}, {"mode": "Auto"}),
        ({"mode": "Manual"}, {"mode": "Manual"}),
        ({"plain": None}, {"mode": "Auto"}),
        ({"map": {"a": None}}, {"mode": "Auto", "map": {}}),
        ({"open": {"a": None}}, {"mode": "Auto", "open": {"a": None}}),
        ({"free": {"a": None}}, {"mode": "Auto", "free": {"a": None}}),
        ({"nullable": None}, {"mode": "Auto", "nullable": None}),
    ],
)
def test_defaults_fill_what_is_absent_or_null_and_other_nulls_vanish(
    given: JsonObject, expected: JsonObject
) -> None:
    schema = a_schema(
        mode={"type": "string", "default": "Auto"},
        plain={"type": "string"},
        nullable={"type": "string", "nullable": True},
        map={"type": "object", "additionalProperties": {"type": "string"}},
        open={"type": "object", "additionalProperties": True},
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    )

    assert schema.default(an_object(**given))["spec"] == expected


def test_defaults_are_filled_inside_defaults_and_inside_items() -> None:
    part: JsonObject = {
        "type": "object",
        "properties": {"mode": {"type": "string", "default": "A"}},
    }
    schema = a_schema(
        one={**part, "default": {}},
        many={"type": "array", "items": part},
        absent=part,
    )

    filled = schema.default(an_object(many=[{}, {"mode": "B"}]))

    assert filled["spec"] == {"one": {"mode": "A"}, "many": [{"mode": "A"}, {"mode": "B"}]}


def test_two_objects_never_share_a_default() -> None:
    schema = a_schema(tags={"type": "array", "items": {"type": "string"}, "default": ["a"]})

    one = schema.default(an_object())
    other = schema.default(an_object())

    assert isinstance(one["spec"], dict)
    assert isinstance(other["spec"], dict)
    assert one["spec"]["tags"] == other["spec"]["tags"]
    assert one["spec"]["tags"] is not other["spec"]["tags"]


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (
            {"type": "integer"},
            "three",
            'spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"',
        ),
        (
            {"type": "integer"},
            1.5,
            'spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"',
        ),
        (
            {"type": "integer"},
            True,
            'spec.x: Invalid value: "boolean": spec.x in body must be of type integer: "boolean"',
        ),
        (
            {"type": "string"},
            None,
            'spec.x: Invalid value: "null": spec.x in body must be of type string: "null"',
        ),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            (
                'spec.x: Invalid value: "boolean": '
                'spec.x in body must be of type integer,string: "boolean"'
            ),
        ),
        (
            {"type": "integer", "minimum": 0},
            -1,
            "spec.x: Invalid value: -1: spec.x in body should be greater than or equal to 0",
        ),
        (
            {"type": "integer", "maximum": 5},
            6,
            "spec.x: Invalid value: 6: spec.x in body should be less than or equal to 5",
        ),
        (
            {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
            5,
            "spec.x: Invalid value: 5: spec.x in body should be less than 5",
        ),
        (
            {"type": "integer", "minimum": 5, "exclusiveMinimum": True},
            5,
            "spec.x: Invalid value: 5: spec.x in body should be greater than 5",
        ),
        (
            {"type": "integer", "multipleOf": 4},
            6,
            "spec.x: Invalid value: 6: spec.x in body should be a multiple of 4",
        ),
        (
            {"type": "integer", "format": "int64"},
            2**63,
            'spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"',
        ),
        (
            {"type": "string", "enum": ["A", "B"]},
            "C",
            'spec.x: Unsupported value: "C": supported values: "A", "B"',
        ),
        (
            {"type": "string", "maxLength": 2},
            "abc",
            "spec.x: Too long: may not be more than 2 bytes",
        ),
        (
            {"type": "string", "minLength": 1},
            "",
            'spec.x: Invalid value: "": spec.x in body should be at least 1 chars long',
        ),
        (
            {"type": "string", "pattern": "^[a-z]+$"},
            "A",
            "spec.x: Invalid value: \"A\": spec.x in body should match '^[a-z]+$'",
        ),
        (
            {"type": "string", "format": "date-time"},
            "yesterday",
            (
                'spec.x: Invalid value: "yesterday": '
                'spec.x in body must be of type date-time: "yesterday"'
            ),
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            [],
            "spec.x: Invalid value: 0: spec.x in body should have at least 1 items",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            "spec.x: Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
            {},
            "spec.x: Invalid value: 0: spec.x in body should have at least 1 properties",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1},
            {"a": "1", "b": "2"},
            "spec.x: Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]},
            {},
            "spec.x.y: Required value",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            ["a", "b", "a", "a"],
            'spec.x[2]: Duplicate value: "a"',
        ),
        (
            {"type": "object", "properties": {}, "x-kubernetes-embedded-resource": True},
            {"kind": ""},
            "spec.x.apiVersion: Required value: must not be empty",
        ),
    ],
)
def test_each_rule_is_broken_with_the_words_of_a_real_server(
    declared: JsonObject, value: JsonValue, expected: str
) -> None:
    assert problems_of(a_schema(x=declared), an_object(x=value))[0] == expected


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ({"type": "integer"}, 3),
        ({"type": "integer"}, 3.0),
        ({"type": "number"}, 3),
        ({"type": "integer", "minimum": 3, "maximum": 3}, 3),
        ({"type": "string", "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, 8080),
        ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+$"}, "8080"),
        ({"x-kubernetes-int-or-string": True, "pattern": "^[a-z]+$"}, 8080),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05Z"),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05.123+02:00"),
        ({"type": "string", "format": "nobody-knows"}, "anything"),
        ({"x-kubernetes-preserve-unknown-fields": True}, [1, {"a": True}]),
        ({"type": "string", "maxLength": 2}, "ää"),
    ],
)
def test_values_within_the_rules_pass(declared: JsonObject, value: JsonValue) -> None:
    assert problems_of(a_schema(x=declared), an_object(x=value)) == []


def test_items_of_a_list_map_are_distinguished_by_their_keys() -> None:
    schema = a_schema(
        ports={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
            },
        }
    )
    document = an_object(ports=[{"name": "a", "port": 1}, {"name": "b"}, {"name": "a", "port": 2}])

    assert problems_of(schema, document) == ['spec.ports[2]: Duplicate value: {"name":"a"}']


def test_a_third_duplicate_is_not_reported_again() -> None:
    schema = a_schema(
        x={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    )

    assert len(problems_of(schema, an_object(x=["a", "a", "a", "b", "b"]))) == 2


def test_paths_name_items_and_map_keys() -> None:
    schema = a_schema(
        parts={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "limits": {"type": "object", "additionalProperties": {"type": "string"}}
                },
            },
        }
    )

    (problem,) = schema.validate(an_object(parts=[{}, {"limits": {"cpu": 1}}]))

    assert problem.path == "spec.parts[1].limits.cpu"
    assert problem.kind is ProblemKind.TYPE_INVALID


@pytest.mark.parametrize(
    ("combination", "value", "expected"),
    [
        ({"anyOf": [{"minLength": 2}, {"enum": ["a"]}]}, "a", []),
        (
            {"anyOf": [{"minLength": 2}, {"enum": ["a"]}]},
            "b",
            ['"spec.x" must validate at least one schema (anyOf)'],
        ),
        (
            {"oneOf": [{"maxLength": 2}, {"minLength": 1}]},
            "ab",
            ['"spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
        ),
        (
            {"oneOf": [{"maxLength": 2}, {"maxLength": 3}]},
            "abcd",
            ['"spec.x" must validate one and only one schema (oneOf). Found none valid'],
        ),
        ({"allOf": [{"minLength": 2}]}, "a", ['"spec.x" must validate all the schemas (allOf)']),
        ({"not": {"enum": ["a"]}}, "a", ['"spec.x" must not validate the schema (not)']),
        ({"not": {"enum": ["a"]}}, "b", []),
    ],
)
def test_combinations_of_rules_hold_together(
    combination: JsonObject, value: str, expected: list[str]
) -> None:
    schema = a_schema(x={"type": "string", **combination})

    details = [p.detail for p in schema.validate(an_object(x=value)) if p.path == "<nil>"]

    assert details == expected


def test_a_dollar_ends_the_text_and_not_the_line() -> None:
    schema = a_schema(x={"type": "string", "pattern": r"^[a$]\$?a$"})

    assert problems_of(schema, an_object(x="$$a")) == []
    assert problems_of(schema, an_object(x="aa\n")) != []


def test_an_invalid_pattern_is_an_error() -> None:
    with pytest.raises(SchemaError, match=r"compiling pattern '\('"):
        a_schema(x={"type": "string", "pattern": "("})


def spec_problems(declared: JsonObject) -> list[str]:
    return [
        str(problem)
        for problem in structural_problems(
            {"type": "object", "properties": {"x": declared}}, path="schema"
        )
    ]


NOT_STRUCTURAL: list[tuple[JsonObject, str]] = [
    (
        {},
        "schema.properties[x].type: Required value: must not be empty for specified object",
    ),
    ({"type": "array"}, "schema.properties[x].items: Required value: must be specified"),
    (
        {"type": "array", "items": {}},
        (
            "schema.properties[x].items.type: Required value: "
            "must not be empty for specified array items"
        ),
    ),
    ({"type": "text"}, 'schema.properties[x].type: Unsupported value: "text"'),
    (
        {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
        (
            "schema.properties[x].additionalProperties: Forbidden: "
            "additionalProperties and properties are mutual exclusive"
        ),
    ),
    (
        {"type": "object", "additionalProperties": False},
        (
            "schema.properties[x].additionalProperties: Forbidden: "
            "additionalProperties cannot be set to false"
        ),
    ),
    (
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "schema.properties[x].uniqueItems: Forbidden",
    ),
    ({"$ref": "#/x", "type": "string"}, "schema.properties[x].$ref: Forbidden"),
    (
        {"type": "string", "anyOf": [{"type": "string"}]},
        "schema.properties[x].anyOf[0].type: Forbidden: must be empty to be structural",
    ),
    (
        {"type": "object", "properties": {}, "oneOf": [{"properties": {"y": {}}}]},
        (
            "schema.properties[x].properties[y]: Required value: "
            "because it is defined in schema.properties[x].oneOf[0].properties[y]"
        ),
    ),
    (
        {
            "type": "string",
            "allOf": [{"x-kubernetes-validations": [{"rule": "self != ''"}]}],
        },
        (
            "schema.properties[x].allOf[0].x-kubernetes-validations: Forbidden: "
            "this server evaluates no CEL rules in a combination"
        ),
    ),
    (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "items": {"type": "object", "properties": {}},
        },
        "schema.properties[x].x-kubernetes-list-map-keys: Required value",
    ),
    (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
        "schema.properties[x].items.properties[name].default: Required value",
    ),
    (
        {"type": "string", "default": 3},
        "schema.properties[x].default: Invalid value",
    ),
    (
        {"type": "object", "properties": {}, "default": {"y": 1}},
        "schema.properties[x].default: Invalid value",
    ),
    ({"type": "string", "pattern": "("}, "schema.properties[x].pattern: Invalid value"),
]


@pytest.mark.parametrize(("declared", "expected"), NOT_STRUCTURAL)
def test_a_schema_that_is_not_structural_is_refused_with_the_reason(
    declared: JsonObject, expected: str
) -> None:
    assert spec_problems(declared)[0].startswith(expected)


def test_a_structural_schema_has_no_problems() -> None:
    quantity: JsonObject = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": r"^(\+|-)?[0-9]+(m|Mi)?$",
    }
    items: JsonObject = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "size": quantity},
    }

    assert (
        spec_problems(
            {
                "type": "array",
                "items": items,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            }
        )
        == []
    )


def test_metadata_may_only_be_declared_as_an_object() -> None:
    problems = structural_problems(
        {
            "type": "object",
            "properties": {
                "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}
            },
        },
        path="schema",
    )

    assert "must not specify anything other than name and generateName" in str(problems[0])
