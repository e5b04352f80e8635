"""Thousands of claims with the same few resources share the values of one."""

from __future__ import annotations

from dataclasses import replace

from compute_quota_client import QuotaClient
from compute_quota_client.testing import FakeQuota, a_claim


async def test_equal_values_of_claims_are_shared_and_nothing_else(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    for name in ("bucket-a", "bucket-b"):
        await quota.project("acme").claim(replace(a_claim(), name=name))
    fake.evaluate()
    first, second = fake.claims("acme")
    assert first.requests[0] is second.requests[0]
    assert first.allocations[0] is second.allocations[0]
    assert first.consumer is second.consumer
    assert first.granted is not None
    assert first.granted is second.granted
    assert (first.name, second.name) == ("bucket-a", "bucket-b")
    assert first.uid != second.uid
