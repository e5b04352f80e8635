import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from compute_quota_client import (
    Absent,
    Denied,
    Foreign,
    Granted,
    Mismatch,
    ObjectRef,
    Operation,
    Pending,
    QuotaClient,
    QuotaError,
    QuotaRejectedError,
    QuotaUnavailableError,
    Releasing,
    project_ref,
)
from compute_quota_client.testing import (
    BUCKET_UID,
    GIB,
    OBJECTS,
    REGION,
    Failure,
    FakeQuota,
    a_claim,
)

LOST = [httpx.ReadTimeout, httpx.ReadError, httpx.ConnectTimeout, Failure(502), Failure(500)]


def posts(fake: FakeQuota) -> int:
    return len(fake.sent(Operation.CREATE))


def order_of(fake: FakeQuota) -> list[str]:
    return [exchange.method for exchange in fake.requests]


async def test_a_claim_is_written_as_milo_wants_it(fake: FakeQuota, quota: QuotaClient) -> None:
    wanted = replace(
        a_claim(), labels={"team": "logs"}, annotations={"why": "because"}, resource=None
    )
    await quota.project("acme").claim(wanted)
    (sent,) = fake.sent(Operation.CREATE)
    project = {"apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "acme"}
    assert json.loads(sent.content) == {
        "apiVersion": "quota.miloapis.com/v1alpha1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": "bucket-logs",
            "namespace": "default",
            "labels": {"team": "logs", REGION: "lhr"},
            "annotations": {"why": "because", BUCKET_UID: "uid-1"},
        },
        "spec": {
            "consumerRef": project,
            "resourceRef": project,
            "requests": [
                {"resourceType": GIB, "amount": 50},
                {"resourceType": OBJECTS, "amount": 1000},
            ],
        },
    }


async def test_a_claim_that_stands_is_judged_and_nothing_is_sent(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    await project.claim(a_claim())
    await asyncio.sleep(1)
    assert isinstance(await project.claim(a_claim()), Granted)
    assert posts(fake) == 1


async def test_a_claim_is_never_updated_and_never_replaced(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    await project.claim(a_claim())
    await asyncio.sleep(1)
    before = fake.claim_json("acme", "default", "bucket-logs")
    larger = await project.claim(replace(a_claim(), requests={GIB: 99}))
    assert isinstance(larger, Mismatch)
    assert larger.fields == ("requests",)
    other = await project.claim(replace(a_claim(), owner={REGION: "ams"}))
    assert isinstance(other, Foreign)
    assert fake.claim_json("acme", "default", "bucket-logs") == before


async def test_a_claim_over_the_limit_is_denied(quota: QuotaClient) -> None:
    project = quota.project("acme")
    await project.claim(replace(a_claim(), requests={GIB: 101, OBJECTS: 1}))
    await asyncio.sleep(1)
    verdict = await project.read("default", "bucket-logs")
    assert isinstance(verdict, Denied)
    assert verdict.reason == "QuotaExceeded"
    results = {one.resource_type: (one.status, one.message) for one in verdict.allocations}
    assert results[GIB] == ("Denied", "Resource quota exceeded: requested 101, available 100")
    assert results[OBJECTS] == ("Granted", "Capacity reserved")


@pytest.mark.spec("Q-09")
async def test_a_claim_that_another_client_created_in_between_gets_the_verdict(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    theirs = replace(a_claim(), owner={REGION: "ams"})
    fake.before_next(Operation.CREATE, lambda: fake.add_claim("acme", theirs))
    verdict = await quota.project("acme").claim(a_claim())
    assert isinstance(verdict, Foreign)
    assert verdict.owner == {REGION: "ams"}
    assert len(fake.claims("acme")) == 1


@pytest.mark.spec("Q-09")
async def test_already_exists_becomes_the_verdict_of_what_is_there(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    await project.claim(a_claim())
    await asyncio.sleep(1)
    # The read is answered as if nothing were there, so the create meets the claim.
    fake.fail_next(Operation.GET, Failure(404, "NotFound"))
    assert isinstance(await project.claim(a_claim()), Granted)
    assert posts(fake) == 2
    assert len(fake.claims("acme")) == 1


@pytest.mark.spec("Q-09")
async def test_created_but_reply_lost_leaves_exactly_one_claim_and_it_is_pending(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.lose_next_reply(Operation.CREATE)
    fake.knobs.paused = True
    assert isinstance(await quota.project("acme").claim(a_claim()), Pending)
    assert posts(fake) == 1
    assert len(fake.claims("acme")) == 1


async def test_a_claim_that_is_known_not_to_stand_is_made_without_a_read(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    assert isinstance(await project.claim(a_claim(), known_absent=True), Pending)
    assert order_of(fake) == ["POST"]


@pytest.mark.spec("Q-09")
async def test_a_claim_that_stands_all_the_same_is_read_and_judged(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.add_claim("acme", replace(a_claim(), owner={REGION: "ams"}))
    verdict = await quota.project("acme").claim(a_claim(), known_absent=True)
    assert isinstance(verdict, Foreign)
    assert order_of(fake) == ["POST", "GET"]
    assert len(fake.claims("acme")) == 1


@pytest.mark.spec("Q-10")
@pytest.mark.parametrize("trouble", LOST)
async def test_a_lost_create_is_read_before_the_second_however_it_began(
    fake: FakeQuota, quota: QuotaClient, trouble: Failure | type[httpx.TransportError]
) -> None:
    fake.fail_next(Operation.CREATE, trouble)
    assert isinstance(await quota.project("acme").claim(a_claim(), known_absent=True), Pending)
    assert order_of(fake) == ["POST", "GET", "POST"]


@pytest.mark.spec("Q-10")
@pytest.mark.parametrize("trouble", LOST)
async def test_a_lost_create_is_read_before_it_is_sent_again(
    fake: FakeQuota, quota: QuotaClient, trouble: Failure | type[httpx.TransportError]
) -> None:
    fake.fail_next(Operation.CREATE, trouble)
    assert isinstance(await quota.project("acme").claim(a_claim()), Pending)
    assert order_of(fake) == ["GET", "POST", "GET", "POST"]


@pytest.mark.spec("Q-10")
@pytest.mark.parametrize("trouble", LOST)
async def test_a_create_is_sent_twice_at_most(
    fake: FakeQuota, quota: QuotaClient, trouble: Failure | type[httpx.TransportError]
) -> None:
    fake.fail_next(Operation.CREATE, *[trouble] * 5)
    with pytest.raises(QuotaUnavailableError) as caught:
        await quota.project("acme").claim(a_claim())
    assert caught.value.operation is Operation.CREATE
    assert posts(fake) == 2


@pytest.mark.spec("Q-10")
async def test_a_lost_create_that_cannot_be_looked_for_is_not_sent_again(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.fail_next(Operation.CREATE, httpx.ReadTimeout)

    def the_plane_goes_away() -> None:
        fake.knobs.away.add("acme")

    fake.before_next(Operation.CREATE, the_plane_goes_away)
    with pytest.raises(QuotaUnavailableError) as caught:
        await quota.project("acme").claim(a_claim())
    assert caught.value.operation is Operation.CREATE
    assert posts(fake) == 1


@pytest.mark.spec("Q-10")
@pytest.mark.parametrize("trouble", LOST)
async def test_a_read_is_tried_three_times(
    fake: FakeQuota, quota: QuotaClient, trouble: Failure | type[httpx.TransportError]
) -> None:
    fake.fail_next(Operation.GET, trouble, trouble)
    assert await quota.project("acme").read("default", "x") == Absent()
    assert len(fake.sent(Operation.GET)) == 3


@pytest.mark.spec("Q-10")
async def test_a_fourth_time_it_is_not_tried(fake: FakeQuota, quota: QuotaClient) -> None:
    fake.fail_next(Operation.GET, *[httpx.ReadError] * 3)
    with pytest.raises(QuotaUnavailableError):
        await quota.project("acme").read("default", "x")
    assert len(fake.sent(Operation.GET)) == 3


@pytest.mark.spec("Q-10")
async def test_a_delete_and_a_list_are_tried_three_times(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    await project.claim(a_claim())
    fake.fail_next(Operation.RELEASE, httpx.ReadTimeout, Failure(503))
    fake.fail_next(Operation.LIST, httpx.ReadTimeout, Failure(503))
    assert len(await project.list()) == 1
    await project.release(
        "default", "bucket-logs", owner=a_claim().owner, subject=a_claim().subject
    )
    assert fake.claims("acme") == []
    assert len(fake.sent(Operation.RELEASE)) == 3
    assert len(fake.sent(Operation.LIST)) == 3


@pytest.mark.spec("Q-10")
async def test_retries_wait_by_the_given_randomness(
    fake: FakeQuota, quota: QuotaClient, now: Callable[[], timedelta]
) -> None:
    fake.fail_next(Operation.GET, httpx.ReadError, httpx.ReadError)
    before = now()
    await quota.project("acme").read("default", "x")
    # Dice at 0.5: half of 0.2 s, then half of 0.4 s.
    assert abs(now() - before - timedelta(seconds=0.3)) < timedelta(milliseconds=50)


@pytest.mark.spec("Q-10")
@pytest.mark.parametrize("latency", [4.9, 5.1, 60])
async def test_an_operation_takes_ten_seconds_at_most(
    fake: FakeQuota, quota: QuotaClient, now: Callable[[], timedelta], latency: float
) -> None:
    fake.knobs.latency = timedelta(seconds=latency)
    before = now()
    with suppress(QuotaUnavailableError):
        await quota.project("acme").claim(a_claim())
    assert now() - before <= timedelta(seconds=10.5)


@pytest.mark.spec("Q-10")
@pytest.mark.parametrize("status", [400, 403, 405, 410, 418, 422])
async def test_other_refusals_are_not_tried_again(
    fake: FakeQuota, quota: QuotaClient, status: int
) -> None:
    fake.fail_next(Operation.GET, Failure(status))
    with pytest.raises(QuotaError):
        await quota.project("acme").read("default", "x")
    assert len(fake.sent(Operation.GET)) == 1


async def test_a_refusal_by_admission_has_causes(quota: QuotaClient) -> None:
    wanted = replace(a_claim(), requests={"unregistered.example.com/x": 1})
    with pytest.raises(QuotaRejectedError) as caught:
        await quota.project("acme").claim(wanted)
    assert {cause.field for cause in caught.value.causes} == {"spec.requests[0].resourceType"}
    assert len(caught.value.causes) == 2


async def test_a_claim_that_is_going_is_releasing(fake: FakeQuota, quota: QuotaClient) -> None:
    project = quota.project("acme")
    await project.claim(a_claim())
    fake.edit_claim("acme", "default", "bucket-logs", {"metadata": {"finalizers": ["x/y"]}})
    fake.delete_claim("acme", "default", "bucket-logs")
    assert isinstance(await project.claim(a_claim()), Releasing)
    assert isinstance(await project.read("default", "bucket-logs"), Releasing)


async def test_a_claim_that_is_there_and_gone_again_and_again_is_unavailable(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.fail_next(Operation.CREATE, *[Failure(409, "AlreadyExists")] * 2)
    with pytest.raises(QuotaUnavailableError):
        await quota.project("acme").claim(a_claim())
    assert posts(fake) == 2


async def test_lists_come_in_pages_of_500_and_are_complete(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.knobs.paused = True
    fake.add_project("acme", "second")
    for n in range(501):
        namespace = "second" if n % 2 else "default"
        await project.claim(replace(a_claim(), name=f"claim-{n:04}", namespace=namespace))
    fake.requests.clear()
    listed = await project.list(f"{REGION}=lhr")
    assert len({(one.namespace, one.name) for one in listed}) == 501
    assert [one.url.params["limit"] for one in fake.requests] == ["500", "500"]
    assert await project.list(f"{REGION}=ams") == []


async def test_a_list_with_an_expired_page_token_begins_again(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    fake.knobs.paused = True
    for n in range(501):
        await project.claim(replace(a_claim(), name=f"claim-{n:04}"))
    fake.requests.clear()
    fake.fail_next(Operation.LIST)

    def forget_in_the_middle() -> None:
        fake.before_next(Operation.LIST, fake.forget_history)

    fake.before_next(Operation.LIST, forget_in_the_middle)
    assert len(await project.list()) == 501
    assert len(fake.requests) == 4


async def test_a_claim_for_another_resource_names_it(fake: FakeQuota, quota: QuotaClient) -> None:
    fake.register("other.example.com/x", claiming=(("compute.datumapis.com", "Instance"),))
    wanted = replace(
        a_claim(),
        requests={"other.example.com/x": 1},
        resource=ObjectRef("compute.datumapis.com", "Instance", "i-0", "default"),
        consumer=project_ref("acme"),
    )
    assert isinstance(await quota.project("acme").claim(wanted), Pending)
    (stored,) = fake.claims("acme")
    assert stored.resource == wanted.resource
