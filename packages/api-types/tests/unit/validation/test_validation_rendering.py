"""How field errors and refusals read on the wire (api.md 12.1): whole, escaped and bounded."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from compute_api_types.validation import (
    MOST_ERRORS,
    UNREAD,
    Amount,
    ErrorKind,
    Facts,
    FieldError,
    Json,
    Path,
    Review,
    derive_city_codes,
    derive_denial,
    derive_unavailable,
    review_workload,
    warnings,
)
from compute_api_types.validation.errors import not_supported
from compute_api_types.validation.rendering import LONGEST_SHOWN, render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compute_api_types.validation import Document

    Build = Callable[[str, Mapping[str, Json]], Document]

NAME = Path().field("spec").field("name")
FACTS = Facts("acme", frozenset({"DFW", "LHR"}), {"default": Review.ALLOWED})


@pytest.mark.parametrize(
    ("kind", "value", "detail", "text"),
    [
        (ErrorKind.REQUIRED, None, "say it", "spec.name: Required value: say it"),
        (ErrorKind.INVALID, 7, "must be 8", "spec.name: Invalid value: 7: must be 8"),
        (ErrorKind.INVALID, "a", "no", 'spec.name: Invalid value: "a": no'),
        (ErrorKind.FORBIDDEN, None, "not you", "spec.name: Forbidden: not you"),
        (ErrorKind.DUPLICATE, "a", "", 'spec.name: Duplicate value: "a"'),
        (ErrorKind.NOT_FOUND, "a", "", 'spec.name: Not found: "a"'),
        (ErrorKind.INTERNAL_ERROR, None, "later", "spec.name: Internal error: later"),
    ],
)
def test_each_kind_has_its_text(kind: ErrorKind, value: Json, detail: str, text: str) -> None:
    assert FieldError(kind, NAME, value, detail).text == text


def test_an_unsupported_value_lists_what_is_supported() -> None:
    assert not_supported(NAME, "x", ["a", "b"]).text == (
        'spec.name: Unsupported value: "x": supported values: "a", "b"'
    )
    assert not_supported(NAME, "x", []).detail == "supported values: none"


def test_a_long_list_of_supported_values_is_cut() -> None:
    detail = not_supported(NAME, "x", [f"city-{number}" for number in range(10_000)]).detail
    shown = detail.count('"') // 2
    assert detail.endswith(f'"city-{shown - 1}" and {10_000 - shown} more')
    assert len(detail) < 3000


def test_a_quantity_is_shown_as_it_was_written() -> None:
    error = FieldError(ErrorKind.INVALID, NAME, Amount(Fraction(2**30), "1024Mi"), "no")
    assert error.body == 'Invalid value: "1024Mi": no'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (-3, "-3"),
        (1.5, "1.5"),
        (float("nan"), "nan"),
        ('say "hi"\\', '"say \\"hi\\"\\\\"'),
        ("a\nb\tc\rd", '"a\\nb\\tc\\rd"'),
        ("\x00\x1b[31m\x7f\x85", '"\\x00\\x1b[31m\\x7f\\x85"'),
        ("\u202eevil\u2028", '"\\u202eevil\\u2028"'),
        ("\U000e0001", '"\\U000e0001"'),
        ("\ud800", '"\\ud800"'),
        ("Zürich 東京", '"Zürich 東京"'),
        ({"a": [1, "b", None], "c": {}}, '{"a":[1,"b",null],"c":{}}'),
        ([], "[]"),
        ([[[[[1]]]]], "[[[[[…]]]]]"),
        ({"a": {"b": {"c": {"d": {}}}}}, '{"a":{"b":{"c":{"d":{…}}}}}'),
        (10**400, "an integer of 1329 bits"),
        (2**512 - 1, str(2**512 - 1)),
        (-(2**512), "an integer of 513 bits"),
    ],
)
def test_values_are_quoted_escaped_and_bounded(value: Json, shown: str) -> None:
    assert render(value) == shown


def test_the_longest_legal_name_is_shown_whole_and_a_longer_value_is_cut() -> None:
    assert render("a" * 253) == '"' + "a" * 253 + '"'
    assert render("a" * 300) == '"' + "a" * LONGEST_SHOWN + '…"'
    assert render("\x00" * 300) == '"' + "\\x00" * (LONGEST_SHOWN // 4) + '…"'


def test_a_value_too_deep_for_python_is_shown() -> None:
    nested: Json = 1
    for _ in range(100_000):
        nested = [nested]
    assert render(nested) == "[[[[[…]]]]]"
    assert len(render(list(range(100_000)))) <= LONGEST_SHOWN + 1


def test_a_key_in_a_path_is_escaped_and_cut() -> None:
    path = Path().field("labels").key("compute.datumapis.com/\n" + "a" * 1000)
    assert path.text.startswith("labels[compute.datumapis.com/\\naaa")
    assert len(path.text) < LONGEST_SHOWN + 20


def test_one_error_is_one_sentence(build: Build) -> None:
    document = build("sandbox", {"P[0].name": ""})
    errors = review_workload(document, None, FACTS)
    assert isinstance(errors, tuple)
    detail = "Required value: a placement has a name"
    assert derive_denial(document, errors).as_status() == {
        "status": "Failure",
        "message": (
            f'Workload.compute.datumapis.com "test" is invalid: spec.placements[0].name: {detail}'
        ),
        "reason": "Invalid",
        "code": 422,
        "details": {
            "name": "test",
            "group": "compute.datumapis.com",
            "kind": "Workload",
            "causes": [
                {
                    "reason": "FieldValueRequired",
                    "message": detail,
                    "field": "spec.placements[0].name",
                }
            ],
        },
    }


def test_several_errors_are_listed_in_order(build: Build) -> None:
    document = build("sandbox", {"metadata.name": None, "P[0].cityCodes": ["X", "x"]})
    errors = review_workload(document, None, FACTS)
    assert isinstance(errors, tuple)
    denial = derive_denial(document, errors)
    assert denial.message == (
        'Workload.compute.datumapis.com "" is invalid: ['
        'spec.placements[0].cityCodes[0]: Unsupported value: "X": '
        'supported values: "DFW", "LHR", '
        'spec.placements[0].cityCodes[1]: Unsupported value: "x": '
        'supported values: "DFW", "LHR", '
        'spec.placements[0].cityCodes[1]: Duplicate value: "x"]'
    )
    assert [cause.reason for cause in denial.causes] == [
        "FieldValueNotSupported",
        "FieldValueNotSupported",
        "FieldValueDuplicate",
    ]


def test_a_megabyte_of_mistakes_gives_a_bounded_answer(build: Build) -> None:
    codes = ["\x00" * 1000] * 10_000
    document = build("sandbox", {"metadata.name": "\n" * 10_000, "P[0].cityCodes": codes})
    errors = review_workload(document, None, FACTS)
    assert isinstance(errors, tuple)
    assert len(errors) == MOST_ERRORS + 1
    denial = derive_denial(document, errors)
    assert len(denial.causes) == MOST_ERRORS
    assert denial.message.endswith(", and more]")
    text = json.dumps(denial.as_status())
    assert len(text) < 200_000
    assert denial.message.isprintable()


def test_exactly_as_many_errors_as_are_shown_are_all_there_are(build: Build) -> None:
    document = build("sandbox", {"P[0].cityCodes": [f"c{n}" for n in range(MOST_ERRORS)]})
    errors = review_workload(document, None, FACTS)
    assert isinstance(errors, tuple)
    denial = derive_denial(document, errors)
    assert len(denial.causes) == MOST_ERRORS
    assert "and more" not in denial.message


def test_what_cannot_be_decided_names_the_project() -> None:
    unavailable = derive_unavailable("acme")
    assert unavailable.code == 500
    assert unavailable.message == 'project "acme" is not available for admission yet, try again'
    assert UNREAD is Facts("acme").cities


def test_max_replicas_is_admitted_without_a_warning(build: Build) -> None:
    document = build(
        "sandbox", {"P[1]": {"name": "b", "scaleSettings": {"minReplicas": 1, "maxReplicas": 2}}}
    )
    assert warnings(document) == ()


def test_city_codes_come_from_locations_and_must_be_label_values() -> None:
    def a_location(code: Json) -> Document:
        return {"spec": {"topology": {"topology.datum.net/city-code": code, "other": "AMS"}}}

    broken: list[Document] = [{}, {"spec": None}, {"spec": {"topology": ["DFW"]}}]
    codes: list[Json] = ["DFW", "dfw", "LHR", "", "-x", "a b", "a" * 64, "a" * 63, 7, None]
    assert derive_city_codes([*map(a_location, codes), *broken]) == {"DFW", "dfw", "LHR", "a" * 63}
