from __future__ import annotations

import pytest

from compute_sim_planes.api_server.schema.compiled import structural_problems
from compute_sim_planes.api_server.schema.field_problems import (
    FieldProblem,
    ProblemKind,
    invalid,
    join_problems,
    required,
)
from compute_sim_planes.json_types import JsonObject


def problems_of(**root: object) -> list[str]:
    schema: JsonObject = {"type": "object", **root}  # type: ignore[dict-item]  # whatever a CRD may hold
    return [str(problem) for problem in structural_problems(schema, path="s")]


def of_field(**declared: object) -> list[str]:
    return problems_of(properties={"x": declared})


NAMED: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ({"type": "string"}, 's.type: Invalid value: "string": must be object at the root'),
        ({"type": ""}, "s.type: Required value: must not be empty at the root"),
        (
            {"additionalProperties": {"type": "string"}},
            "s.additionalProperties: Forbidden: must not be used at the root",
        ),
        ({"nullable": True}, "s.nullable: Forbidden: nullable cannot be true at the root"),
        (
            {"properties": {"kind": {"type": "integer"}}},
            's.properties[kind].type: Invalid value: "integer": must be string',
        ),
    ],
)
def test_the_root_is_an_object_with_ordinary_metadata(root: JsonObject, expected: str) -> None:
    assert expected in problems_of(**root)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (
            {"type": "string", "x-kubernetes-embedded-resource": True},
            'type: Invalid value: "string": must be object if x-kubernetes-embedded-resource',
        ),
        (
            {"type": "array", "items": NAMED, "x-kubernetes-list-type": "bag"},
            'x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "map"',
        ),
        (
            {"type": "string", "x-kubernetes-list-type": "set"},
            'type: Invalid value: "string": must be array if x-kubernetes-list-type is specified',
        ),
        (
            {"type": "object", "properties": {}, "x-kubernetes-map-type": "lumpy"},
            'x-kubernetes-map-type: Unsupported value: "lumpy": supported values: "atomic"',
        ),
        (
            {"type": "array", "items": NAMED, "x-kubernetes-list-map-keys": ["name"]},
            (
                'x-kubernetes-list-type: Invalid value: "": '
                "must be map if x-kubernetes-list-map-keys is non-empty"
            ),
        ),
        (
            {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            (
                'items.type: Invalid value: "string": '
                "must be object if parent array's x-kubernetes-list-type is map"
            ),
        ),
        (
            {
                "type": "array",
                "items": NAMED,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["other"],
            },
            (
                'x-kubernetes-list-map-keys: Invalid value: ["other"]: '
                "entries must all be names of item properties of scalar type"
            ),
        ),
        (
            {"type": "object", "properties": {}, "not": {"properties": {"metadata": {}}}},
            "not.properties[metadata]: Forbidden: must not be specified in a nested context",
        ),
        (
            {"type": "string", "allOf": [{"pattern": "("}]},
            "allOf[0].pattern: Invalid value",
        ),
        (
            {"type": "string", "anyOf": [{"allOf": [{"default": "x"}]}]},
            "anyOf[0].allOf[0].default: Forbidden: must be undefined to be structural",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string", "default": 1}},
            "additionalProperties.default: Invalid value",
        ),
        (
            {"type": "array", "items": {"type": "object", "properties": {"y": {}}}},
            "items.properties[y].type: Required value: must not be empty for specified object",
        ),
    ],
)
def test_a_field_that_cannot_be_merged_or_pruned_is_refused(
    declared: JsonObject, expected: str
) -> None:
    texts = [text.removeprefix("s.properties[x].") for text in of_field(**declared)]

    assert any(text.startswith(expected) for text in texts)


def test_what_only_a_combination_names_is_missing_outside_of_it() -> None:
    rule: JsonObject = {"properties": {"y": {"properties": {"z": {}}}}}

    (text,) = of_field(type="object", properties={"y": NAMED}, allOf=[rule])

    assert text.endswith(
        "Required value: because it is defined in "
        "s.properties[x].allOf[0].properties[y].properties[z]"
    )


def test_a_key_with_a_default_need_not_be_required() -> None:
    items: JsonObject = {
        "type": "object",
        "properties": {"protocol": {"type": "string", "default": "TCP"}},
    }

    assert (
        of_field(
            **{
                "type": "array",
                "items": items,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["protocol"],
            }
        )
        == []
    )


def test_rules_may_be_combined_over_declared_fields() -> None:
    assert (
        of_field(
            type="object",
            properties={"y": {"type": "string"}},
            oneOf=[{"properties": {"y": {"enum": ["a"]}}}, {"required": ["y"]}],
        )
        == []
    )


def test_problems_join_to_one_line_without_repeats() -> None:
    one, other = required("spec.a"), invalid("spec.b", {"k": None}, "no")

    assert join_problems([one]) == "spec.a: Required value"
    assert join_problems([one, other, one]) == (
        '[spec.a: Required value, spec.b: Invalid value: {"k":null}: no]'
    )


def test_a_problem_is_a_cause_of_a_refusal() -> None:
    problem = FieldProblem("spec.a", ProblemKind.INVALID, "must not be", None)

    assert problem.cause() == {
        "reason": "FieldValueInvalid",
        "message": 'Invalid value: "null": must not be',
        "field": "spec.a",
    }
