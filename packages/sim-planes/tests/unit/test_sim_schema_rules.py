"""CEL rules of a schema: which are stored, what they refuse, and what they tolerate."""

from __future__ import annotations

import pytest

from compute_sim_planes.api_server.schema.compiled import (
    CompiledSchema,
    compile_schema,
    structural_problems,
)
from compute_sim_planes.api_server.schema.field_problems import required
from compute_sim_planes.api_server.schema.rule_evaluation import (
    NOT_CHECKED,
    check_rules,
    prevents_rules,
)
from compute_sim_planes.api_server.schema.validation import validate
from compute_sim_planes.json_types import JsonObject, JsonValue

RULES = "x-kubernetes-validations"


def a_document(spec: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {"spec": {"type": "object", **spec}}}


def a_schema(**spec: JsonValue) -> CompiledSchema:
    return compile_schema(a_document({**spec}))


def outcome(
    schema: CompiledSchema, spec: JsonObject, before: JsonObject | None = None
) -> list[tuple[str, bool]]:
    """The refusals of an object, each with whether it is tolerated."""
    stored: JsonObject | None = None if before is None else {"spec": before}
    found = schema.check_rules({"spec": spec}, stored)
    return [(str(each.problem), each.is_tolerated) for each in found]


def rule(text: str, **more: JsonValue) -> JsonObject:
    return {"rule": text, **more}


NUMBER: JsonObject = {"type": "integer"}
ORDER: JsonObject = {"properties": {"low": NUMBER, "high": NUMBER}}


def ordered(stated: JsonObject) -> CompiledSchema:
    return compile_schema(a_document({**ORDER, RULES: [stated]}))


def test_a_rule_names_its_field_its_reason_and_its_message() -> None:
    stated = rule("self.low <= self.high", message="too low", fieldPath=".high")
    schema = ordered(stated)
    assert outcome(schema, {"low": 1, "high": 2}) == []
    assert outcome(schema, {"low": 3, "high": 2}) == [("spec.high: Invalid value: too low", False)]


def test_a_rule_without_a_message_shows_its_text_and_a_scalar_its_value() -> None:
    schema = a_schema(properties={"low": {**NUMBER, RULES: [rule("self > 0")]}})
    expected = "spec.low: Invalid value: -1: failed rule: self > 0"
    assert outcome(schema, {"low": -1}) == [(expected, False)]


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("'low is ' + string(self.low)", "low is 3"),
        ("'two\\nlines'", "fixed"),
        ("string(1 / (self.low - 3))", "fixed"),
    ],
)
def test_a_message_expression_falls_back_to_the_message(expression: str, shown: str) -> None:
    stated = rule("self.low < 3", message="fixed", messageExpression=expression)
    schema = ordered(stated)
    assert outcome(schema, {"low": 3}) == [(f"spec: Invalid value: {shown}", False)]


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("FieldValueForbidden", "spec.low: Forbidden: no"),
        ("FieldValueRequired", "spec.low: Required value: no"),
        ("FieldValueDuplicate", "spec.low: Duplicate value: no"),
        ("FieldValueInvalid", "spec.low: Invalid value: no"),
    ],
)
def test_a_reason_is_the_kind_of_the_refusal(reason: str, text: str) -> None:
    stated = rule("!has(self.low)", message="no", reason=reason, fieldPath=".low")
    schema = ordered(stated)
    assert outcome(schema, {"low": 1}) == [(text, False)]


def test_an_error_of_the_evaluation_refuses_too() -> None:
    schema = ordered(rule("self.low > 0", message="positive"))
    ((text, is_tolerated),) = outcome(schema, {"high": 1})
    assert text.startswith('spec: Invalid value: "object": ')
    assert text.endswith(" evaluating rule: positive")
    assert not is_tolerated


def test_a_transition_rule_compares_with_the_stored_value_alone() -> None:
    schema = a_schema(
        properties={"city": {"type": "string", RULES: [rule("self == oldSelf", message="fixed")]}}
    )
    assert outcome(schema, {"city": "DFW"}) == []
    assert outcome(schema, {"city": "DFW"}, {}) == []
    assert outcome(schema, {"city": "DFW"}, {"city": "DFW"}) == []
    changed = [('spec.city: Invalid value: "LHR": fixed', False)]
    assert outcome(schema, {"city": "LHR"}, {"city": "DFW"}) == changed


def test_a_broken_rule_is_tolerated_while_its_value_is_unchanged() -> None:
    schema = a_schema(
        properties={
            "note": {"type": "string"},
            "order": {"type": "object", **ORDER, RULES: [rule("self.low < self.high")]},
        }
    )
    bad: JsonObject = {"low": 3, "high": 1}
    text = "spec.order: Invalid value: failed rule: self.low < self.high"
    assert outcome(schema, {"order": bad, "note": "b"}, {"order": bad}) == [(text, True)]
    assert outcome(schema, {"order": {**bad, "high": 2}}, {"order": bad}) == [(text, False)]
    assert outcome(schema, {"order": bad}, {}) == [(text, False)]


ELEMENT: JsonObject = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "size": {**NUMBER, RULES: [rule("self > 0")]}},
}
BY_NAME: JsonObject = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}


def a_list(**marker: JsonValue) -> CompiledSchema:
    return a_schema(properties={"sizes": {"type": "array", "items": ELEMENT, **marker}})


def test_an_element_with_a_key_is_compared_with_the_one_of_that_key() -> None:
    schema = a_list(**BY_NAME)
    stored: JsonObject = {"sizes": [{"name": "a", "size": 0}, {"name": "b", "size": 1}]}
    moved: JsonObject = {
        "sizes": [{"name": "c", "size": 1}, {"name": "a", "size": 0}, {"name": "b", "size": 0}]
    }
    text = "spec.sizes[{}].size: Invalid value: 0: failed rule: self > 0"
    assert outcome(schema, moved, stored) == [(text.format(1), True), (text.format(2), False)]


def test_an_element_without_a_key_is_tolerated_only_in_an_unchanged_list() -> None:
    schema = a_list()
    stored: JsonObject = {"sizes": [{"name": "a", "size": 0}]}
    text = "spec.sizes[0].size: Invalid value: 0: failed rule: self > 0"
    assert outcome(schema, stored, stored) == [(text, True)]
    more: JsonObject = {"sizes": [{"name": "a", "size": 0}, {"name": "b", "size": 1}]}
    assert outcome(schema, more, stored) == [(text, False)]


def test_values_of_a_map_are_compared_by_key_and_nulls_are_left_out() -> None:
    limits: JsonObject = {
        "type": "object",
        "additionalProperties": {**NUMBER, "nullable": True, RULES: [rule("self > 0")]},
    }
    schema = a_schema(properties={"limits": limits, "other": {"type": "string"}})
    text = "spec.limits[{}]: Invalid value: 0: failed rule: self > 0"
    stored: JsonObject = {"limits": {"a": 0}}
    desired: JsonObject = {"limits": {"a": 0, "b": 0, "c": None}, "unknown": 1}
    assert outcome(schema, desired, stored) == [
        (text.format("a"), True),
        (text.format("b"), False),
    ]


def test_a_rule_at_the_root_has_no_field_unless_it_names_one() -> None:
    document: JsonObject = {**a_document(ORDER), RULES: [rule("has(self.spec)", message="no spec")]}
    schema = compile_schema(document)
    (found,) = check_rules({}, schema.root, None)
    assert str(found.problem) == "<nil>: Invalid value: no spec"
    named: JsonObject = {
        **document,
        RULES: [rule("has(self.spec)", message="no", fieldPath=".spec")],
    }
    (found,) = check_rules({}, compile_schema(named).root, None)
    assert str(found.problem) == "spec: Invalid value: no"


def test_rules_wait_until_an_object_has_the_types_that_they_are_written_for() -> None:
    assert prevents_rules([required("spec.low")])
    schema = a_schema(properties={"low": {**NUMBER, "minimum": 1}})
    assert not prevents_rules(list(validate({"spec": {"low": 0}}, schema.root)))
    assert str(NOT_CHECKED).startswith('<nil>: Invalid value: "null": some validation rules were')


PLACE = "schema.properties[spec].x-kubernetes-validations[0]"
REFUSED: list[tuple[JsonObject, str]] = [
    (rule(" "), f"{PLACE}.rule: Required value: rule is not specified"),
    (rule("true", message=" "), f"{PLACE}.message: Invalid value"),
    (rule("true", message="a\nb"), f"{PLACE}.message: Invalid value"),
    (rule("true &&\ntrue"), f"{PLACE}.message: Required value"),
    (rule("true", reason="Other"), f"{PLACE}.reason: Unsupported value"),
    (rule("true", fieldPath="low"), f"{PLACE}.fieldPath: Invalid value"),
    (rule("true", fieldPath=".other"), f"{PLACE}.fieldPath: Invalid value"),
    (rule("true", optionalOldSelf=True), f"{PLACE}.optionalOldSelf: Forbidden"),
    (rule("self.low +"), f"{PLACE}.rule: Invalid value"),
    (rule("1 + 1"), f"{PLACE}.rule: Invalid value"),
    (rule("has(self.lwo)"), f"{PLACE}.rule: Invalid value"),
    (rule("true", messageExpression="1"), f"{PLACE}.messageExpression: Invalid value"),
    (rule("true", messageExpression="self.lwo"), f"{PLACE}.messageExpression: Invalid value"),
]


@pytest.mark.parametrize(("stated", "expected"), REFUSED)
def test_a_rule_that_cannot_be_evaluated_is_not_stored(stated: JsonObject, expected: str) -> None:
    found = structural_problems(a_document({**ORDER, RULES: [stated]}), path="schema")
    assert str(found[0]).startswith(expected)


@pytest.mark.parametrize(
    "text",
    [
        "has(self.low) || self.low.matches('^self.other$')",
        "'self.other' != \"oldSelf.other\"",
        "oldSelf.low == self.low",
    ],
)
def test_names_of_functions_and_text_in_quotes_are_no_fields(text: str) -> None:
    assert structural_problems(a_document({**ORDER, RULES: [rule(text)]})) == []


def test_a_transition_rule_needs_a_list_with_keys_around_it() -> None:
    stated: JsonObject = {**ELEMENT, RULES: [rule("self == oldSelf")]}
    plain: JsonObject = {"properties": {"a": {"type": "array", "items": stated}}}
    (problem,) = structural_problems(a_document(plain), path="schema")
    assert str(problem).endswith(
        "oldSelf cannot be used on the uncorrelatable portion of the schema within "
        "schema.properties[spec].properties[a]"
    )
    keyed: JsonObject = {"properties": {"a": {"type": "array", "items": stated, **BY_NAME}}}
    assert structural_problems(a_document(keyed), path="schema") == []
