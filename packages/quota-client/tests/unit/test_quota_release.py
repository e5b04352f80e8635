import asyncio
import json
from collections.abc import Callable

import httpx
import pytest
from pydantic import JsonValue

from compute_quota_client import (
    Absent,
    NotOurs,
    Operation,
    QuotaClient,
    QuotaRejectedError,
    QuotaUsageError,
    Released,
)
from compute_quota_client.testing import BUCKET_UID, REGION, Failure, FakeQuota, a_claim

OWNER, SUBJECT = a_claim().owner, a_claim().subject
WHERE = ("acme", "default", "bucket-logs")
SOMEBODY_ELSE: dict[str, JsonValue] = {BUCKET_UID: "uid-2"}


def deletes(fake: FakeQuota) -> list[dict[str, object]]:
    return [json.loads(exchange.content) for exchange in fake.sent(Operation.RELEASE)]


def status_update(fake: FakeQuota) -> Callable[[], None]:
    return lambda: fake.edit_claim(*WHERE, {"status": {"observedGeneration": 7}})


def adoption(fake: FakeQuota) -> Callable[[], None]:
    return lambda: fake.edit_claim(*WHERE, {"metadata": {"annotations": SOMEBODY_ELSE}})


@pytest.fixture
async def claimed(fake: FakeQuota, quota: QuotaClient) -> None:
    fake.knobs.paused = True
    await quota.project("acme").claim(a_claim())


@pytest.mark.spec("Q-18")
@pytest.mark.usefixtures("claimed")
async def test_a_recognised_claim_is_deleted_with_the_uid_and_version_it_was_read_with(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    (stored,) = fake.claims("acme")
    released = await quota.project("acme").release(*WHERE[1:], owner=OWNER, subject=SUBJECT)
    assert released == Released(stored)
    assert fake.claims("acme") == []
    assert deletes(fake) == [
        {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": stored.uid, "resourceVersion": stored.resource_version},
        }
    ]


@pytest.mark.spec("Q-18")
@pytest.mark.usefixtures("claimed")
@pytest.mark.parametrize(
    ("owner", "subject"),
    [({REGION: "ams"}, SUBJECT), (OWNER, {BUCKET_UID: "uid-2"}), ({"no/key": "x"}, SUBJECT)],
)
async def test_a_claim_of_another_owner_or_subject_is_not_ours_and_untouched(
    fake: FakeQuota, quota: QuotaClient, owner: dict[str, str], subject: dict[str, str]
) -> None:
    before = fake.claims("acme")
    released = await quota.project("acme").release(*WHERE[1:], owner=owner, subject=subject)
    assert released == NotOurs(before[0])
    assert fake.claims("acme") == before
    assert deletes(fake) == []


@pytest.mark.spec("Q-18")
async def test_what_is_absent_is_absent(fake: FakeQuota, quota: QuotaClient) -> None:
    project = quota.project("acme")
    assert await project.release(*WHERE[1:], owner=OWNER, subject=SUBJECT) == Absent()
    assert await project.release(*WHERE[1:], uid="1234") == Absent()
    assert deletes(fake) == []


@pytest.mark.spec("Q-18")
@pytest.mark.usefixtures("claimed")
async def test_a_status_update_in_between_does_not_save_it(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.before_next(Operation.RELEASE, status_update(fake))
    released = await quota.project("acme").release(*WHERE[1:], owner=OWNER, subject=SUBJECT)
    assert isinstance(released, Released)
    assert fake.claims("acme") == []
    assert len(deletes(fake)) == 2


@pytest.mark.spec("Q-18")
@pytest.mark.usefixtures("claimed")
async def test_an_adoption_in_between_does(fake: FakeQuota, quota: QuotaClient) -> None:
    fake.before_next(Operation.RELEASE, adoption(fake))
    released = await quota.project("acme").release(*WHERE[1:], owner=OWNER, subject=SUBJECT)
    assert isinstance(released, NotOurs)
    assert len(fake.claims("acme")) == 1


@pytest.mark.spec("Q-18")
@pytest.mark.usefixtures("claimed")
async def test_by_uid_a_claim_of_any_owner_is_recognised(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    (stored,) = fake.claims("acme")
    project = quota.project("acme")
    assert isinstance(await project.release(*WHERE[1:], uid="another"), NotOurs)
    assert isinstance(await project.release(*WHERE[1:], uid=stored.uid), Released)
    assert fake.claims("acme") == []


@pytest.mark.spec("Q-18")
@pytest.mark.usefixtures("claimed")
async def test_a_claim_recreated_in_between_is_not_the_one_with_that_uid(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    (stored,) = fake.claims("acme")
    project = quota.project("acme")
    fake.delete_claim(*WHERE)
    await project.claim(a_claim())
    assert isinstance(await project.release(*WHERE[1:], uid=stored.uid), NotOurs)


@pytest.mark.spec("Q-18")
@pytest.mark.usefixtures("claimed")
async def test_a_claim_that_changes_at_every_look_is_looked_at_three_more_times(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.fail_next(Operation.RELEASE, *[Failure(409, "Conflict")] * 10)
    released = await quota.project("acme").release(*WHERE[1:], owner=OWNER, subject=SUBJECT)
    assert isinstance(released, NotOurs)
    assert len(deletes(fake)) == 4


@pytest.mark.usefixtures("claimed")
async def test_a_claim_that_is_going_already_is_not_deleted_again(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.edit_claim(*WHERE, {"metadata": {"finalizers": ["x/y"]}})
    project = quota.project("acme")
    for _ in range(3):
        released = await project.release(*WHERE[1:], owner=OWNER, subject=SUBJECT)
        assert isinstance(released, Released)
    assert len(deletes(fake)) == 1


@pytest.mark.usefixtures("claimed")
async def test_a_delete_with_a_lost_answer_succeeds(fake: FakeQuota, quota: QuotaClient) -> None:
    fake.lose_next_reply(Operation.RELEASE)
    released = await quota.project("acme").release(*WHERE[1:], owner=OWNER, subject=SUBJECT)
    assert released == Absent()
    assert fake.claims("acme") == []


@pytest.mark.usefixtures("claimed")
async def test_a_delete_that_is_refused_is_an_error(fake: FakeQuota, quota: QuotaClient) -> None:
    fake.fail_next(Operation.RELEASE, Failure(403, "Forbidden"))
    with pytest.raises(QuotaRejectedError) as caught:
        await quota.project("acme").release(*WHERE[1:], owner=OWNER, subject=SUBJECT)
    assert caught.value.operation is Operation.RELEASE


async def test_releasing_needs_something_to_recognise_by(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    with pytest.raises(QuotaUsageError, match="owner"):
        await project.release(*WHERE[1:], owner={}, subject=SUBJECT)
    with pytest.raises(QuotaUsageError, match="subject"):
        await project.release(*WHERE[1:], owner=OWNER, subject={})
    with pytest.raises(QuotaUsageError, match="uid"):
        await project.release(*WHERE[1:], uid="")
    with pytest.raises(QuotaUsageError, match="uid"):
        await project.release(  # type: ignore[call-overload]  # the misuse is what is tested
            *WHERE[1:], uid="1", owner=OWNER, subject=SUBJECT
        )
    assert fake.requests == []


@pytest.mark.usefixtures("claimed")
async def test_two_releases_at_once_delete_it_once(fake: FakeQuota, quota: QuotaClient) -> None:
    project = quota.project("acme")
    outcomes = await asyncio.gather(
        *(project.release(*WHERE[1:], owner=OWNER, subject=SUBJECT) for _ in range(2))
    )
    assert {type(outcome) for outcome in outcomes} <= {Released, Absent}
    assert fake.claims("acme") == []


@pytest.mark.usefixtures("claimed")
async def test_a_release_that_cannot_read_touches_nothing(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.fail_next(Operation.GET, *[httpx.ReadError] * 3)
    with pytest.raises(Exception, match="getting ResourceClaim"):
        await quota.project("acme").release(*WHERE[1:], owner=OWNER, subject=SUBJECT)
    assert len(fake.claims("acme")) == 1
