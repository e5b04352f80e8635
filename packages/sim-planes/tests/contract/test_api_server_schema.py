"""Schemas of custom kinds: defaults, pruning, and validation with the server's messages."""

from __future__ import annotations

import pytest

from compute_sim_planes.api_server.testing import Api, a_widget
from compute_sim_planes.json_types import JsonObject, objects_at


async def test_defaults_are_filled_in_and_nulls_give_way_to_them(api: Api, widgets: str) -> None:
    made = (
        await api.post(widgets, a_widget(spec={"size": 1, "color": None, "settings": {}}))
    ).expect(201)
    assert made["spec"] == {"size": 1, "color": "red", "settings": {"mode": "auto"}}


async def test_a_null_without_a_default_vanishes(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget(spec={"size": 1, "code": None}))).expect(201)
    assert made["spec"] == {"size": 1, "color": "red"}


async def test_unknown_fields_are_pruned_with_a_warning(api: Api, widgets: str) -> None:
    reply = await api.post(
        widgets, a_widget(spec={"size": 1, "surprise": True, "settings": {"other": 1}})
    )
    assert reply.expect(201)["spec"] == {"size": 1, "color": "red", "settings": {"mode": "auto"}}
    assert any('unknown field \\"spec.surprise\\"' in text for text in reply.warnings)


async def test_strict_validation_refuses_unknown_fields(api: Api, widgets: str) -> None:
    sent = a_widget(spec={"size": 1, "surprise": True})
    refused = await api.post(widgets, sent, fieldValidation="Strict")
    refused.expect(400)
    assert refused.reason == "BadRequest"
    assert 'strict decoding error: unknown field "spec.surprise"' in refused.message


async def test_ignored_validation_prunes_in_silence(api: Api, widgets: str) -> None:
    sent = a_widget(spec={"size": 1, "surprise": True})
    reply = await api.post(widgets, sent, fieldValidation="Ignore")
    assert reply.expect(201)["spec"] == {"size": 1, "color": "red"}
    assert "Warning" not in reply.headers


async def test_a_free_field_keeps_whatever_it_holds(api: Api, widgets: str) -> None:
    free: JsonObject = {"anything": [1, {"deep": None}], "goes": True}
    made = (await api.post(widgets, a_widget(spec={"size": 1, "free": free}))).expect(201)
    assert made["spec"] == {"size": 1, "color": "red", "free": free}


async def test_an_int_or_string_keeps_its_type(api: Api, widgets: str) -> None:
    for name, quantity in (("number", 8080), ("text", "8080")):
        sent = a_widget(name, {"size": 1, "quantity": quantity})
        made = (await api.post(widgets, sent)).expect(201)
        assert made["spec"] == {"size": 1, "color": "red", "quantity": quantity}


@pytest.mark.parametrize(
    ("spec", "message", "reason"),
    [
        ({}, "spec.size: Required value", "FieldValueRequired"),
        (
            {"size": 0},
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
            "FieldValueInvalid",
        ),
        (
            {"size": 101},
            "spec.size: Invalid value: 101: spec.size in body should be less than or equal to 100",
            "FieldValueInvalid",
        ),
        (
            {"size": "big"},
            (
                'spec.size: Invalid value: "string": '
                'spec.size in body must be of type integer: "string"'
            ),
            "FieldValueTypeInvalid",
        ),
        (
            {"size": 1, "color": "green"},
            'spec.color: Unsupported value: "green": supported values: "red", "blue"',
            "FieldValueNotSupported",
        ),
        (
            {"size": 1, "code": "abc"},
            "spec.code: Invalid value: \"abc\": spec.code in body should match '^[A-Z]{3}$'",
            "FieldValueInvalid",
        ),
        (
            {"size": 1, "ports": [{"name": "a"}, {"name": "a"}]},
            'spec.ports[1]: Duplicate value: {"name":"a"}',
            "FieldValueDuplicate",
        ),
        (
            {"size": 1, "ports": [{"port": 1}]},
            "spec.ports[0].name: Required value",
            "FieldValueRequired",
        ),
        (
            {"size": 1, "ports": [{"name": n} for n in "abcd"]},
            "spec.ports: Too many: 4: must have at most 3 items",
            "FieldValueTooMany",
        ),
        (
            {"size": 1, "tags": "a"},
            'spec.tags: Invalid value: "string": spec.tags in body must be of type array: "string"',
            "FieldValueTypeInvalid",
        ),
    ],
)
async def test_a_wrong_value_is_refused_with_the_field_and_the_reason(
    api: Api, widgets: str, spec: JsonObject, message: str, reason: str
) -> None:
    refused = await api.post(widgets, a_widget(spec=spec))
    refused.expect(422)
    assert refused.reason == "Invalid"
    assert refused.message == f'Widget.contract.example.com "one" is invalid: {message}'
    field, _, text = message.partition(": ")
    assert {"reason": reason, "message": text, "field": field} in objects_at(
        refused.details, "causes"
    )
    assert refused.details["kind"] == "Widget"
    assert refused.details["name"] == "one"


async def test_several_problems_are_listed_in_brackets(api: Api, widgets: str) -> None:
    refused = await api.post(widgets, a_widget(spec={"size": 0, "color": "green"}))
    refused.expect(422)
    assert refused.message.startswith('Widget.contract.example.com "one" is invalid: [spec.')
    assert len(objects_at(refused.details, "causes")) == 2


async def test_a_status_is_validated_too(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.merge(f"{widgets}/one/status", {"status": {"ready": "many"}})
    refused.expect(422)
    assert "status.ready" in refused.message


async def test_a_required_top_level_field_may_not_be_removed(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.merge(f"{widgets}/one", {"spec": None})
    refused.expect(422)
    assert refused.message == 'Widget.contract.example.com "one" is invalid: spec: Required value'
