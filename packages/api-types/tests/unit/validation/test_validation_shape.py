"""Values of the wrong type: a field error with what is allowed, never an exception."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pytest

from compute_api_types.labels import SSH_KEYS
from compute_api_types.validation import (
    ErrorKind,
    Facts,
    Review,
    needs_locations,
    networks_to_review,
    review_workload,
    warnings,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from compute_api_types.validation import Document, Json

    Build = Callable[[str, Mapping[str, Json]], Document]

FACTS: Final = Facts("acme", frozenset({"DFW"}), {"default": Review.ALLOWED})
INT32: Final = "must be an integer between -2147483648 and 2147483647"
QUANTITY: Final = "must be a quantity: an integer or a string such as 10Gi"

WRONG: Final[Mapping[str, tuple[Json, str]]] = {
    "spec": ([], "must be an object"),
    "metadata": ("x", "must be an object"),
    "metadata.namespace": (7, "must be a string"),
    "spec.placements": ("DFW", "must be a list"),
    "spec.placements[0]": ("x", "must be an object"),
    "spec.placements[0].name": (True, "must be a string"),
    "spec.placements[0].cityCodes": ({"DFW": 1}, "must be a list"),
    "spec.placements[0].cityCodes[0]": (1, "must be a string"),
    "spec.placements[0].scaleSettings": (1, "must be an object"),
    "spec.placements[0].scaleSettings.minReplicas": ("1", INT32),
    "spec.placements[0].scaleSettings.maxReplicas": (True, INT32),
    "spec.placements[0].scaleSettings.metrics": (1.5, "must be a list"),
    "spec.placements[0].scaleSettings.instanceManagementPolicy": ([], "must be a string"),
    "spec.template": (False, "must be an object"),
    "spec.template.metadata": ([], "must be an object"),
    "spec.template.metadata.labels": ("x", "must be an object"),
    "spec.template.metadata.labels[app]": (1, "must be a string"),
    f"spec.template.metadata.annotations[{SSH_KEYS}]": (["x"], "must be a string"),
    "spec.template.spec": (1, "must be an object"),
    "spec.template.spec.volumes": ({}, "must be a list"),
    "spec.template.spec.runtime": ("x", "must be an object"),
    "spec.template.spec.runtime.sandbox": (1, "must be an object"),
    "spec.template.spec.runtime.sandbox.containers": ("x", "must be a list"),
    "spec.template.spec.runtime.sandbox.containers[0].image": ({}, "must be a string"),
    "spec.template.spec.runtime.virtualMachine": ("x", "must be an object"),
    "spec.template.spec.networkInterfaces": ("x", "must be a list"),
    "spec.template.spec.networkInterfaces[0].network": ("x", "must be an object"),
    "spec.template.spec.location": ("x", "must be an object"),
}


@pytest.mark.parametrize(
    ("path", "value", "detail"), [(path, *wrong) for path, wrong in WRONG.items()], ids=WRONG
)
def test_a_value_of_the_wrong_type_is_invalid_and_the_only_error(
    path: str, value: Json, detail: str, build: Build
) -> None:
    document = build("sandbox", {path: value})
    errors = review_workload(document, None, FACTS)
    assert isinstance(errors, tuple)
    reported = [(error.kind, error.path.text, error.value, error.detail) for error in errors]
    assert reported == [(ErrorKind.INVALID, path, value, detail)]


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (1.5, QUANTITY),
        (True, QUANTITY),
        ({}, QUANTITY),
        ("ten", "must be a decimal number with an optional suffix such as m, k, M, Gi or e3"),
        ("1e999999999", "must have an exponent between -64 and 64"),
        ("9" * 100, "must have at most 64 characters"),
    ],
)
def test_what_is_no_quantity_is_invalid(value: Json, detail: str, build: Build) -> None:
    settings: Json = {
        "minReplicas": 1,
        "maxReplicas": 2,
        "metrics": [
            {"resource": {"name": "cpu", "target": {"value": value}}},
            {"resource": {"name": "cpu", "target": {"averageValue": value}}},
        ],
    }
    disk: Json = {"template": {"spec": {"resources": {"requests": {"storage": value, "x": []}}}}}
    document = build(
        "sandbox", {"P[0].scaleSettings": settings, "S.volumes": [{"name": "d", "disk": disk}]}
    )
    errors = review_workload(document, None, FACTS)
    assert isinstance(errors, tuple)
    assert {error.detail for error in errors} == {detail}
    assert [error.path.text for error in errors] == [
        "spec.template.spec.volumes[0].disk.template.spec.resources.requests[storage]",
        "spec.placements[0].scaleSettings.metrics[0].resource.target.value",
        "spec.placements[0].scaleSettings.metrics[1].resource.target.averageValue",
    ]


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 10**5000], ids=["2³¹", "-2³¹-1", "huge"])
def test_a_number_that_no_int32_holds_is_invalid(number: int, build: Build) -> None:
    document = build("sandbox", {"P[0].scaleSettings.maxReplicas": number})
    errors = review_workload(document, None, FACTS)
    assert isinstance(errors, tuple)
    assert [error.detail for error in errors] == [INT32]
    assert len(errors[0].text) < 400


def test_the_smallest_int32_is_left_to_the_rules(build: Build) -> None:
    document = build("sandbox", {"P[0].scaleSettings.minReplicas": -(2**31)})
    errors = review_workload(document, None, FACTS)
    assert isinstance(errors, tuple)
    assert [error.detail for error in errors] == ["must be between 1 and 1000"]


@pytest.mark.parametrize(
    ("storage", "from_image", "details"),
    [
        ("0", False, ["must be greater than 0"]),
        ("1m", False, ["must be at least 10Gi", "must be a multiple of 1Gi"]),
        ("200.5Gi", False, ["must be at most 100Gi", "must be a multiple of 1Gi"]),
        ("10Gi", True, ["must be at least 25Gi for datumcloud/ubuntu-2204-lts"]),
    ],
)
def test_the_error_of_a_wrong_size_has_the_sizes_allowed(
    storage: str, *, from_image: bool, details: list[str], build: Build
) -> None:
    spec: dict[str, Json] = {"resources": {"requests": {"storage": storage}}}
    if from_image:
        spec["populator"] = {"image": {"name": "datumcloud/ubuntu-2204-lts"}}
    changes: dict[str, Json] = {
        "S.volumes": [{"name": "a", "disk": {"template": {"spec": spec}}}],
        "C.volumeAttachments": [{"name": "a"}],
    }
    errors = review_workload(build("sandbox", changes), None, FACTS)
    assert isinstance(errors, tuple)
    assert [error.detail for error in errors] == details


def test_null_is_absent_everywhere(build: Build) -> None:
    nulls: dict[str, Json] = {"metadata": None, "spec": {"template": None, "placements": None}}
    assert review_workload(nulls, None, FACTS) == review_workload({}, None, FACTS)
    document = build("sandbox", {})
    spec = document["spec"]
    assert isinstance(spec, Mapping)
    with_nulls: Document = {**document, "spec": {**spec, "gateway": None}}
    assert review_workload(with_nulls, None, FACTS) == ()
    assert networks_to_review(with_nulls, document) == ()


def test_null_in_a_list_is_an_element_without_anything(build: Build) -> None:
    placements: Json = [None, {"name": "a", "cityCodes": [None], "scaleSettings": {}}]
    document: Document = {**build("sandbox", {}), "spec": {"placements": placements}}
    errors = review_workload(document, None, FACTS)
    assert isinstance(errors, tuple)
    assert [error.path.text for error in errors if "placements" in error.path.text] == [
        "spec.placements[0].name",
        "spec.placements[0].cityCodes",
        "spec.placements[0].scaleSettings.minReplicas",
        "spec.placements[1].cityCodes[0]",
        "spec.placements[1].scaleSettings.minReplicas",
    ]


def test_a_legacy_wrong_type_does_not_block_an_edit_elsewhere(build: Build) -> None:
    storage: Json = {"resources": {"requests": {"storage": "ten"}}}
    legacy: dict[str, Json] = {
        "S.runtime.sandbox": ["old"],
        "S.volumes": [7, {"name": "a", "disk": {"template": {"spec": storage}}}],
        "P[0].scaleSettings.metrics": [{"resource": {"target": {"value": 1.5}}}],
        "P[0].scaleSettings.maxReplicas": 3,
    }
    stored = build("sandbox", legacy)
    wanted = build("sandbox", {**legacy, "P[0].scaleSettings.minReplicas": 2})
    assert review_workload(wanted, stored, FACTS) == ()
    worse = build("sandbox", {**legacy, "S.location": "here"})
    errors = review_workload(worse, stored, FACTS)
    assert isinstance(errors, tuple)
    assert [error.path.text for error in errors] == ["spec.template.spec.location"]


def test_questions_about_a_misshapen_document_have_answers() -> None:
    misshapen: Document = {
        "metadata": 1,
        "spec": {
            "placements": [{"cityCodes": "DFW"}, 7, {"cityCodes": [1]}],
            "template": {"spec": {"networkInterfaces": [1, {"network": "x"}]}},
        },
    }
    assert needs_locations(misshapen, None)
    assert not needs_locations({"spec": {"placements": "x"}}, None)
    assert networks_to_review(misshapen, None) == ()
    assert warnings(misshapen) == ()
