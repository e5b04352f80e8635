"""Pure functions of Milo's quota: the steps of a claim, and usage of a plane."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from compute_sim_planes.client.workqueue import NamespacedName
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at
from compute_sim_planes.milo.quota.evaluation import (
    BucketKey,
    bucket_key_of,
    derive_allocated,
    derive_allocation,
    derive_folded,
    is_pending,
    waiting_requests,
)
from compute_sim_planes.milo.quota.usage import QuotaUsage
from compute_sim_planes.milo.testing import a_claim, a_grant, verdict_of

NOW: Final = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
WIDGETS: Final = "test.example.com/widgets"
GRAMS: Final = "test.example.com/grams"
BUCKET: Final = BucketKey(WIDGETS, "resourcemanager.miloapis.com", "Project", "acme")
ACTIVE: Final[JsonObject] = {"conditions": [{"type": "Active", "status": "True"}]}


def a_stored_claim(amount: int = 1, *, version: int = 1, uid: str = "u1") -> JsonObject:
    claim = a_claim("acme", "c", {WIDGETS: amount}, uid=uid, resourceVersion=str(version))
    object_at(claim, "metadata")["generation"] = 1
    return claim


def decided(claim: JsonObject, available: int) -> JsonObject:
    """The claim after one of its requests was evaluated."""
    request = waiting_requests(claim)[0]
    allocation = derive_allocation(request, BUCKET, available, NOW)
    allocated: JsonObject = {**claim, "status": derive_allocated(claim, allocation)}
    return {**allocated, "status": derive_folded(allocated, NOW)}


def holding(amount: int, *, version: int = 1, uid: str = "u1") -> JsonObject:
    return decided(a_stored_claim(amount, version=version, uid=uid), amount)


def test_a_claim_without_any_condition_is_pending() -> None:
    assert is_pending(a_stored_claim())


def test_exactly_what_is_left_is_granted_and_one_more_is_not() -> None:
    assert verdict_of(decided(a_stored_claim(3), 3)) == ("True", "QuotaAvailable")
    denied = decided(a_stored_claim(4), 3)
    assert verdict_of(denied) == ("False", "QuotaExceeded")
    (allocation,) = objects_at(denied, "status", "allocations")
    assert allocation["message"] == "Resource quota exceeded: requested 4, available 3"
    assert "allocatedAmount" not in allocation


def test_a_negative_amount_is_reported_as_zero() -> None:
    (allocation,) = objects_at(decided(a_stored_claim(1), -3), "status", "allocations")
    assert allocation["message"] == "Resource quota exceeded: requested 1, available 0"


def test_a_claim_is_folded_after_each_part() -> None:
    claim = a_stored_claim()
    requests: list[JsonValue] = [
        {"resourceType": WIDGETS, "amount": 1},
        {"resourceType": GRAMS, "amount": 1},
    ]
    object_at(claim, "spec")["requests"] = requests
    half = decided(claim, 1)
    (condition,) = objects_at(half, "status", "conditions")
    assert condition["message"] == "Awaiting capacity evaluation: 1 granted, 1 pending"
    assert [one["resourceType"] for one in waiting_requests(half)] == [GRAMS]


def test_a_verdict_is_final_whatever_the_spec_is_now() -> None:
    granted = holding(1)
    more: list[JsonValue] = [
        {"resourceType": WIDGETS, "amount": 1},
        {"resourceType": GRAMS, "amount": 1},
    ]
    object_at(granted, "spec")["requests"] = more
    object_at(granted, "metadata")["generation"] = 2
    assert derive_folded(granted, NOW) == object_at(granted, "status")


def test_a_bucket_is_named_after_type_and_consumer() -> None:
    consumer: JsonObject = {
        "apiGroup": "resourcemanager.miloapis.com",
        "kind": "Project",
        "name": "acme",
    }
    assert bucket_key_of(consumer, WIDGETS) == BUCKET
    other = bucket_key_of({**consumer, "name": "other"}, WIDGETS)
    assert other.object_name != BUCKET.object_name
    assert len(BUCKET.object_name) == len("bucket-") + 64


def test_a_ledger_counts_active_grants_and_what_claims_hold() -> None:
    ledger = QuotaUsage()
    ledger.replace_grants(
        [
            {**a_grant("acme", {WIDGETS: 5}, "a"), "status": ACTIVE},
            {**a_grant("acme", {WIDGETS: 2}, "b"), "status": ACTIVE},
            a_grant("acme", {WIDGETS: 100}, "inactive"),
            {**a_grant("other", {WIDGETS: 100}, "foreign"), "status": ACTIVE},
            {**a_grant("acme", {GRAMS: 100}, "of grams"), "status": ACTIVE},
        ]
    )
    assert ledger.upsert_claim(holding(3)) == {BUCKET}
    counted = ledger.count(BUCKET)
    assert (counted["limit"], counted["allocated"], counted["available"]) == (7, 3, 4)
    assert (counted["claimCount"], counted["grantCount"]) == (1, 2)


def test_an_older_state_of_a_claim_does_not_undo_a_newer_one() -> None:
    ledger = QuotaUsage()
    ledger.upsert_claim(holding(3, version=10))
    assert ledger.upsert_claim(a_stored_claim(3, version=9)) == set()
    assert ledger.count(BUCKET)["allocated"] == 3


def test_a_namesake_counts_by_itself_even_with_a_lower_version() -> None:
    ledger = QuotaUsage()
    ledger.upsert_claim(holding(3, version=10))
    assert ledger.upsert_claim(a_stored_claim(1, version=9, uid="u2")) == {BUCKET}
    assert ledger.count(BUCKET)["allocated"] == 0


def test_the_end_of_an_old_claim_does_not_end_its_namesake() -> None:
    ledger = QuotaUsage()
    ledger.upsert_claim(holding(3, version=10, uid="u2"))
    assert ledger.remove_claim(holding(3, version=11, uid="u1")) == set()
    assert ledger.claim(NamespacedName("default", "c")) is not None
    assert ledger.remove_claim(holding(3, version=12, uid="u2")) == {BUCKET}
    assert ledger.count(BUCKET)["allocated"] == 0
