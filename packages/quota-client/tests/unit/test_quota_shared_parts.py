"""Thousands of claims say the same of the same few resources, and take the memory of one."""

from __future__ import annotations

from dataclasses import replace

from compute_quota_client import QuotaClient
from compute_quota_client.testing import FakeQuota, a_claim


async def test_claims_that_say_the_same_share_their_parts_and_nothing_of_their_own(
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
