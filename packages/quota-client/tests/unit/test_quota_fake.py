"""What a test may expect of the fake beyond the contract: its knobs."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from compute_quota_client import (
    Absent,
    Granted,
    Operation,
    Pending,
    QuotaClient,
    QuotaRejectedError,
    QuotaUnavailableError,
)
from compute_quota_client.testing import (
    GIB,
    REGION,
    SERVER,
    Failure,
    FakeQuota,
    a_claim,
    a_found_claim,
)

WHERE = ("acme", "default", "bucket-logs")


@pytest.mark.spec("Q-20")
async def test_the_reaper_of_old_versions_takes_granted_claims_without_owner_references(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.knobs.reaper = True
    await project.claim(a_claim())
    await project.claim(replace(a_claim(), name="owned"))
    fake.edit_claim("acme", "default", "owned", {"metadata": {"ownerReferences": [{"uid": "1"}]}})
    await asyncio.sleep(29)
    assert isinstance(await project.read("default", "bucket-logs"), Granted)
    await asyncio.sleep(32)
    assert await project.read("default", "bucket-logs") == Absent()
    assert isinstance(await project.read("default", "owned"), Granted)


async def test_the_reaper_leaves_a_claim_that_was_made_again(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.knobs.reaper = True
    await project.claim(a_claim())
    await asyncio.sleep(40)
    fake.delete_claim(*WHERE)
    await project.claim(a_claim())
    await asyncio.sleep(10)
    assert isinstance(await project.read("default", "bucket-logs"), Granted)


async def test_a_paused_evaluation_waits_for_the_test(fake: FakeQuota, quota: QuotaClient) -> None:
    project = quota.project("acme")
    await project.claim(a_claim())
    fake.knobs.paused = True
    await asyncio.sleep(600)
    assert isinstance(await project.read("default", "bucket-logs"), Pending)
    fake.evaluate()
    assert isinstance(await project.read("default", "bucket-logs"), Granted)
    assert fake.reserved("acme", GIB) == 50


async def test_timestamps_are_taken_from_the_clock_of_the_test(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    noon = datetime(2030, 6, 1, 12, tzinfo=UTC)
    fake.knobs.now = lambda: noon
    verdict = await quota.project("acme").claim(a_claim())
    assert isinstance(verdict, Pending)
    assert verdict.since == noon


async def test_failures_come_in_their_order_and_can_be_taken_back(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.fail_next(Operation.GET, Failure(403), *[httpx.ReadError] * 9)
    with pytest.raises(QuotaRejectedError):
        await project.read("default", "x")
    with pytest.raises(QuotaUnavailableError):
        await project.read("default", "x")
    fake.fail_no_more()
    assert await project.read("default", "x") == Absent()


async def test_latency_is_taken_by_every_answer(fake: FakeQuota, quota: QuotaClient) -> None:
    fake.knobs.latency = timedelta(seconds=2)
    before = asyncio.get_running_loop().time()
    await quota.project("acme").read("default", "x")
    assert 2 <= asyncio.get_running_loop().time() - before < 2.1


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        (f"{REGION}=lhr", True),
        (f"{REGION}==lhr", True),
        (f"{REGION}=ams", False),
        (f"{REGION}!=ams", True),
        (f"{REGION}!=lhr", False),
        (REGION, True),
        (f"!{REGION}", False),
        (f"{REGION}=lhr,other", False),
        (f"{REGION}=lhr, !other", True),
    ],
)
async def test_selectors_select(
    fake: FakeQuota, quota: QuotaClient, selector: str, matches: bool
) -> None:
    fake.add_claim("acme", a_claim())
    assert bool(await quota.project("acme").list(selector)) is matches


async def test_a_claim_with_a_finalizer_goes_when_it_is_taken_off(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.add_claim("acme", a_claim())
    fake.edit_claim(*WHERE, {"metadata": {"finalizers": ["x/y"]}})
    fake.delete_claim(*WHERE)
    fake.delete_claim(*WHERE)
    assert len(fake.claims("acme")) == 1
    fake.edit_claim(*WHERE, {"metadata": {"finalizers": None}})
    assert await project.read("default", "bucket-logs") == Absent()
    with pytest.raises(KeyError):
        fake.claim_json(*WHERE)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/v1/pods", b"", 404),
        ("GET", "/apis/apps/v1/deployments", b"", 404),
        ("GET", "/api/v1/namespaces/default/resourceclaims", b"", 404),
        ("GET", "/apis/quota.miloapis.com/v1alpha1/namespaces", b"", 404),
        ("POST", "/apis/quota.miloapis.com/v1alpha1/resourceregistrations", b"{}", 422),
        ("GET", "/apis/quota.miloapis.com/v1alpha1/resourceregistrations", b"", 200),
        ("GET", "/api/v1/namespaces", b"", 200),
    ],
)
async def test_what_it_does_not_serve_is_not_found_and_what_does_not_fit_refused(
    fake: FakeQuota, method: str, path: str, body: bytes, status: int
) -> None:
    async with httpx.AsyncClient(transport=fake.transport, base_url=SERVER) as client:
        answer = await client.request(method, path, content=body)
    assert answer.status_code == status


@pytest.mark.parametrize(
    "patch",
    [
        b"not json",
        b'[{"op": "move", "path": "/metadata/name"}]',
        b'[{"op": "replace", "path": "/metadata/nothing", "value": 1}]',
        b'[{"op": "replace", "path": "/nothing/at/all", "value": 1}]',
        b'[{"op": "test", "path": "/spec/requests/0/amount", "value": 1}]',
        b'[{"op": "test", "path": "/spec/requests/9/amount", "value": 1}]',
        b'[{"op": "add", "path": "/spec/requests/-", "value": 1}]',
    ],
)
async def test_patches_that_do_not_apply_change_nothing(fake: FakeQuota, patch: bytes) -> None:
    fake.knobs.paused = True
    fake.add_claim("acme", a_claim())
    before = fake.claim_json(*WHERE)
    path = (
        "/apis/resourcemanager.miloapis.com/v1alpha1/projects/acme/control-plane"
        "/apis/quota.miloapis.com/v1alpha1/namespaces/default/resourceclaims/bucket-logs"
    )
    headers = {"Content-Type": "application/json-patch+json"}
    async with httpx.AsyncClient(transport=fake.transport, base_url=SERVER) as client:
        answer = await client.patch(path, content=patch, headers=headers)
        assert answer.status_code == 422
        assert fake.claim_json(*WHERE) == before
        added = b'[{"op": "add", "path": "/metadata/labels/new", "value": "one"}]'
        assert (await client.patch(path, content=added, headers=headers)).status_code == 200
        taken = b'[{"op": "remove", "path": "/metadata/labels/new"}]'
        assert (await client.patch(path, content=taken, headers=headers)).status_code == 200
    after = fake.claim_json(*WHERE)
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])


def test_a_found_claim_is_what_its_claim_would_be() -> None:
    claim = a_found_claim(state="denied")
    assert claim.asks_for(a_claim().requests)
    assert claim.carries(a_claim().owner)
    assert {one.status for one in claim.allocations} == {"Granted", "Denied"}
