"""Refusals of new claims and registrations by Milo: neighbours.md 2.3."""

from __future__ import annotations

from typing import Final

import pytest

from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at
from compute_sim_planes.milo.quota.claim_validation import (
    derive_active,
    refuse_claim,
    refuse_registration,
)
from compute_sim_planes.milo.testing import a_claim, a_registration

WIDGETS: Final = "test.example.com/widgets"
GRAMS: Final = "test.example.com/grams"
ACTIVE: Final[JsonObject] = {"conditions": [{"type": "Active", "status": "True"}]}


def registered(*resource_types: str) -> dict[str, JsonObject]:
    return derive_active({**a_registration(one), "status": ACTIVE} for one in resource_types)


def refusal_of(claim: JsonObject, *resource_types: str) -> str:
    """The message after the claim's name; empty when it is admitted."""
    refusal = refuse_claim(claim, registered(*resource_types))
    if refusal is None:
        return ""
    assert (refusal.code, refusal.reason) == (403, "Forbidden")
    head = 'resourceclaims.quota.miloapis.com "c" is forbidden: '
    head += 'ResourceClaim.quota.miloapis.com "c" is invalid: '
    assert refusal.message.startswith(head)
    return refusal.message.removeprefix(head)


def with_spec(claim: JsonObject, field: str, value: JsonValue) -> JsonObject:
    object_at(claim, "spec")[field] = value
    return claim


@pytest.mark.spec("Q-20")
def test_a_claim_of_registered_types_by_a_kind_that_may_claim_passes() -> None:
    assert refusal_of(a_claim("p", "c", {WIDGETS: 1, GRAMS: 1}), WIDGETS, GRAMS) == ""


def test_a_registration_that_is_not_active_does_not_count() -> None:
    inactive = derive_active([a_registration(WIDGETS)])
    assert inactive == {}
    assert refuse_claim(a_claim("p", "c", {WIDGETS: 1}), inactive) is not None


@pytest.mark.spec("Q-20")
def test_an_unregistered_type_is_refused_twice_in_one_message() -> None:
    assert refusal_of(a_claim("p", "c", {WIDGETS: 1}), GRAMS) == (
        f'[spec.requests[0].resourceType: Invalid value: "{WIDGETS}": Resource type '
        f"'{WIDGETS}' is not available for quota management. Enable quota tracking for this "
        "resource type by registering it with the quota system, spec.requests[0].resourceType: "
        f"Internal error: failed to check claiming rules for {WIDGETS}: no ResourceRegistration "
        f"found for resource type {WIDGETS}]"
    )


@pytest.mark.spec("Q-20")
@pytest.mark.parametrize("amount", [0, -3])
def test_an_amount_that_is_none_is_refused(amount: int) -> None:
    assert refusal_of(a_claim("p", "c", {WIDGETS: amount}), WIDGETS) == (
        f"spec.requests[0].amount: Invalid value: {amount}: amount must be greater than 0"
    )


@pytest.mark.spec("Q-20")
def test_the_same_type_twice_is_refused() -> None:
    claim = a_claim("p", "c", {WIDGETS: 1, GRAMS: 1})
    requests = objects_at(claim, "spec", "requests")
    twice: list[JsonValue] = [*requests, {**requests[0]}]
    assert refusal_of(with_spec(claim, "requests", twice), WIDGETS, GRAMS) == (
        "spec.requests[2].resourceType: Duplicate value: \"resource type 'test.example.com/widgets'"
        ' is already specified in request 0"'
    )


@pytest.mark.spec("Q-20")
def test_a_consumer_of_another_type_is_refused() -> None:
    consumer: JsonObject = {"apiGroup": "resourcemanager.miloapis.com", "kind": "Organization"}
    claim = with_spec(a_claim("p", "c", {WIDGETS: 1}), "consumerRef", {**consumer, "name": "o"})
    assert refusal_of(claim, WIDGETS).startswith("spec.consumerRef: Invalid value:")


@pytest.mark.spec("Q-20")
@pytest.mark.parametrize(
    ("group", "kind", "may"),
    [
        ("compute.datumapis.com", "Instance", True),
        ("compute.datumapis.com", "iNSTANCE", True),
        ("Compute.datumapis.com", "Instance", False),
        ("compute.datumapis.com", "Workload", False),
    ],
)
def test_the_claiming_kind_is_compared_by_its_group_exactly_and_its_kind_in_any_case(
    group: str, kind: str, may: bool
) -> None:
    reference: JsonObject = {"apiGroup": group, "kind": kind, "name": "i"}
    claim = with_spec(a_claim("p", "c", {WIDGETS: 1}), "resourceRef", reference)
    message = (
        f"spec.requests[0].resourceType: Forbidden: resource type {group}/{kind} does not satisfy "
        f"claiming rules for {WIDGETS}. Allowed claiming resources: "
        "[compute.datumapis.com/Instance, resourcemanager.miloapis.com/Project]"
    )
    assert refusal_of(claim, WIDGETS) == ("" if may else message)


@pytest.mark.spec("Q-20")
def test_a_type_is_registered_once_active_or_not() -> None:
    taken = [a_registration(WIDGETS)]
    assert refuse_registration(a_registration(GRAMS), taken) is None
    refusal = refuse_registration(a_registration(WIDGETS), taken)
    assert refusal is not None
    assert (refusal.code, refusal.reason) == (403, "Forbidden")
