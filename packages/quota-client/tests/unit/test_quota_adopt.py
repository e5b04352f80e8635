import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from pydantic import JsonValue

from compute_quota_client import (
    Absent,
    Denied,
    Foreign,
    Granted,
    Mismatch,
    Operation,
    ProjectQuota,
    QuotaClient,
    QuotaRejectedError,
    QuotaUnavailableError,
    QuotaUsageError,
    Releasing,
    Verdict,
)
from compute_quota_client.testing import BUCKET_UID, GIB, REGION, Failure, FakeQuota, a_claim

OWNER = a_claim().owner
OLD, NEW, THIRD = {BUCKET_UID: "uid-1"}, {BUCKET_UID: "uid-2"}, {BUCKET_UID: "uid-3"}
ABSENT: Mapping[str, str | None] = {BUCKET_UID: None}
POINTER = "/metadata/annotations/storage.example.com~1bucket-uid"
WHERE = ("acme", "default", "bucket-logs")


@pytest.fixture
async def project(fake: FakeQuota, quota: QuotaClient) -> ProjectQuota:
    """Project `acme` with the claim granted."""
    project = quota.project("acme")
    await project.claim(a_claim())
    fake.evaluate()
    return project


async def adopt(
    project: ProjectQuota,
    old: Mapping[str, str | None] = OLD,
    new: dict[str, str] = NEW,
    owner: dict[str, str] | None = None,
) -> Verdict | Absent:
    whose = OWNER if owner is None else owner
    return await project.adopt(*WHERE[1:], owner=whose, old_subject=old, new_subject=new)


def patches(fake: FakeQuota) -> list[JsonValue]:
    return [json.loads(exchange.content) for exchange in fake.sent(Operation.ADOPT)]


@pytest.mark.spec("Q-42")
async def test_a_claim_is_handed_on_by_one_patch_that_tests_uid_and_old_subject(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    (stored,) = fake.claims("acme")
    verdict = await adopt(project)
    assert isinstance(verdict, Granted)
    assert verdict.found.value_of(BUCKET_UID) == "uid-2"
    assert patches(fake) == [
        [
            {"op": "test", "path": "/metadata/uid", "value": stored.uid},
            {"op": "test", "path": POINTER, "value": "uid-1"},
            {"op": "replace", "path": POINTER, "value": "uid-2"},
        ]
    ]
    (sent,) = fake.sent(Operation.ADOPT)
    assert sent.headers["Content-Type"] == "application/json-patch+json"


@pytest.mark.spec("Q-42")
async def test_spec_uid_and_status_stay_as_they_are(fake: FakeQuota, project: ProjectQuota) -> None:
    before = fake.claim_json(*WHERE)
    await adopt(project)
    after = fake.claim_json(*WHERE)
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    old, new = before["metadata"], after["metadata"]
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    assert changed == {"annotations", "resourceVersion"}
    assert fake.reserved("acme", GIB) == 50


@pytest.mark.spec("Q-42")
async def test_a_subject_in_labels_is_patched_there_too(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    old = {"a.example.com/slot~x": "s", BUCKET_UID: "uid-1"}
    with pytest.raises(QuotaUsageError):
        replace(a_claim(), subject=old)
    old = {"a.example.com/slot": "s", BUCKET_UID: "uid-1"}
    await project.claim(replace(a_claim(), labels={"a.example.com/slot": "s"}, subject=old))
    new = {"a.example.com/slot": "t", BUCKET_UID: "uid-2"}
    await adopt(project, old, new)
    (stored,) = fake.claims("acme")
    assert stored.labels == {"a.example.com/slot": "t", REGION: "lhr"}
    assert stored.annotations == {BUCKET_UID: "uid-2"}


@pytest.mark.spec("Q-42", "OU-03")
async def test_a_claim_that_records_no_subject_is_handed_on_if_nothing_of_it_changed(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.edit_claim(*WHERE, {"metadata": {"annotations": None}})
    before = fake.claim_json(*WHERE)
    (stored,) = fake.claims("acme")
    verdict = await adopt(project, ABSENT)
    assert isinstance(verdict, Granted)
    assert verdict.found.annotations == NEW
    after = fake.claim_json(*WHERE)
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    assert patches(fake) == [
        [
            {"op": "test", "path": "/metadata/uid", "value": stored.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": stored.resource_version},
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": POINTER, "value": "uid-2"},
        ]
    ]


@pytest.mark.spec("Q-42", "OU-03")
async def test_an_absent_subject_beside_other_annotations_leaves_those(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.edit_claim(*WHERE, {"metadata": {"annotations": {BUCKET_UID: None, "a/b": "c"}}})
    assert isinstance(await adopt(project, ABSENT), Granted)
    (stored,) = fake.claims("acme")
    assert stored.annotations == {**NEW, "a/b": "c"}


@pytest.mark.spec("Q-42", "OU-03")
async def test_a_claim_that_records_a_subject_is_not_handed_on_as_one_without(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    verdict = await adopt(project, ABSENT)
    assert isinstance(verdict, Mismatch)
    assert verdict.fields == ("subject",)
    assert patches(fake) == []


@pytest.mark.spec("Q-42", "OU-03")
async def test_of_two_that_adopt_a_claim_without_subject_exactly_one_wins(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.edit_claim(*WHERE, {"metadata": {"annotations": None}})
    fake.knobs.latency = timedelta(milliseconds=10)
    verdicts = await asyncio.gather(adopt(project, ABSENT), adopt(project, ABSENT, THIRD))
    assert sorted(type(verdict).__name__ for verdict in verdicts) == ["Granted", "Mismatch"]
    (stored,) = fake.claims("acme")
    assert stored.annotations in (NEW, THIRD)


@pytest.mark.spec("Q-42")
async def test_what_is_adopted_already_is_not_written_again(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    await adopt(project)
    assert isinstance(await adopt(project), Granted)
    assert len(patches(fake)) == 1


@pytest.mark.spec("Q-42")
async def test_a_claim_of_another_owner_is_foreign_and_not_written(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    verdict = await adopt(project, owner={REGION: "ams"})
    assert isinstance(verdict, Foreign)
    assert verdict.owner == {REGION: "lhr"}
    assert patches(fake) == []


@pytest.mark.spec("Q-42")
async def test_a_claim_for_another_subject_is_a_mismatch_and_not_written(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    verdict = await adopt(project, THIRD, NEW)
    assert isinstance(verdict, Mismatch)
    assert verdict.fields == ("subject",)
    assert patches(fake) == []


@pytest.mark.spec("Q-42")
async def test_a_claim_that_is_going_is_releasing_and_not_written(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.edit_claim(*WHERE, {"metadata": {"finalizers": ["x/y"]}})
    fake.delete_claim(*WHERE)
    assert isinstance(await adopt(project), Releasing)
    assert patches(fake) == []


@pytest.mark.spec("Q-42")
async def test_a_claim_that_vanished_is_absent(fake: FakeQuota, project: ProjectQuota) -> None:
    fake.delete_claim(*WHERE)
    assert await adopt(project) == Absent()
    assert patches(fake) == []


@pytest.mark.spec("Q-42")
async def test_a_claim_that_vanishes_in_between_is_absent(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.before_next(Operation.ADOPT, lambda: fake.delete_claim(*WHERE))
    assert await adopt(project) == Absent()


@pytest.mark.spec("Q-42")
async def test_a_failed_test_is_a_mismatch(fake: FakeQuota, project: ProjectQuota) -> None:
    taken: dict[str, JsonValue] = {"metadata": {"annotations": {BUCKET_UID: "uid-3"}}}
    fake.before_next(Operation.ADOPT, lambda: fake.edit_claim(*WHERE, taken))
    verdict = await adopt(project)
    assert isinstance(verdict, Mismatch)
    assert verdict.found.value_of(BUCKET_UID) == "uid-3"
    assert len(patches(fake)) == 1


@pytest.mark.spec("Q-42")
@pytest.mark.parametrize("status", [409, 422])
async def test_a_refused_patch_is_read_and_never_a_rejection(
    fake: FakeQuota, project: ProjectQuota, status: int
) -> None:
    fake.fail_next(Operation.ADOPT, Failure(status, "Invalid"))
    assert isinstance(await adopt(project), Mismatch)
    assert len(patches(fake)) == 1


@pytest.mark.spec("Q-42")
async def test_a_claim_recreated_in_between_fails_the_test_of_its_uid(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    def recreated() -> None:
        fake.delete_claim(*WHERE)
        # The next claim of that name, for the same subject: only the UID differs.
        fake.add_claim("acme", a_claim())

    fake.before_next(Operation.ADOPT, recreated)
    assert isinstance(await adopt(project), Mismatch)
    (stored,) = fake.claims("acme")
    assert stored.value_of(BUCKET_UID) == "uid-1"
    assert len(patches(fake)) == 1


@pytest.mark.spec("Q-42")
async def test_a_lost_reply_is_read_and_no_second_patch_sent(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.lose_next_reply(Operation.ADOPT)
    assert isinstance(await adopt(project), Granted)
    assert len(patches(fake)) == 1


@pytest.mark.spec("Q-42")
@pytest.mark.parametrize("trouble", [httpx.ReadTimeout, httpx.ConnectError, Failure(502)])
async def test_a_patch_that_was_not_carried_out_is_sent_once_more(
    fake: FakeQuota, project: ProjectQuota, trouble: Failure | type[httpx.TransportError]
) -> None:
    fake.fail_next(Operation.ADOPT, trouble)
    assert isinstance(await adopt(project), Granted)
    assert len(patches(fake)) == 2
    fake.fail_next(Operation.ADOPT, *[trouble] * 5)
    with pytest.raises(QuotaUnavailableError) as caught:
        await adopt(project, NEW, THIRD)
    assert caught.value.operation is Operation.ADOPT
    assert len(patches(fake)) == 4


@pytest.mark.spec("Q-42")
async def test_of_two_adopters_at_once_exactly_one_wins(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.knobs.latency = timedelta(milliseconds=10)
    verdicts = await asyncio.gather(adopt(project, OLD, NEW), adopt(project, OLD, THIRD))
    assert sorted(type(verdict).__name__ for verdict in verdicts) == ["Granted", "Mismatch"]
    (stored,) = fake.claims("acme")
    (winner,) = [verdict for verdict in verdicts if isinstance(verdict, Granted)]
    assert winner.found.value_of(BUCKET_UID) == stored.value_of(BUCKET_UID)


@pytest.mark.spec("Q-42")
async def test_rights_that_are_missing_are_a_rejection(
    fake: FakeQuota, project: ProjectQuota
) -> None:
    fake.fail_next(Operation.ADOPT, Failure(403, "Forbidden"))
    with pytest.raises(QuotaRejectedError) as caught:
        await adopt(project)
    assert caught.value.operation is Operation.ADOPT


async def test_the_rest_of_an_adopted_claim_is_judged_by_itself(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    await project.claim(replace(a_claim(), requests={GIB: 1000}))
    fake.evaluate()
    assert isinstance(await adopt(project), Denied)
    await adopt(project, NEW, OLD)
    requests: list[JsonValue] = [{"resourceType": GIB, "amount": 10}]
    await project.release(*WHERE[1:], owner=OWNER, subject=OLD)
    await project.claim(replace(a_claim(), requests={GIB: 20}))
    fake.evaluate()
    fake.edit_claim(*WHERE, {"spec": {"requests": requests}})
    raised = await adopt(project)
    assert isinstance(raised, Mismatch)
    assert raised.fields == ("allocations",)
    assert raised.found.value_of(BUCKET_UID) == "uid-2"


@pytest.mark.parametrize(
    ("argument", "owner", "old", "new"),
    [
        ("owner", {}, OLD, NEW),
        ("new_subject", {REGION: "lhr"}, {}, {}),
        ("new_subject", {REGION: "lhr"}, OLD, {"other": "x"}),
        ("new_subject", {REGION: "lhr"}, {REGION: "lhr"}, {REGION: "ams"}),
        (
            "new_subject",
            {REGION: "lhr"},
            {"quota.miloapis.com/created-by": "a"},
            {"quota.miloapis.com/created-by": "b"},
        ),
    ],
)
async def test_an_adoption_that_makes_no_sense_is_refused_before_anything_is_sent(
    fake: FakeQuota,
    quota: QuotaClient,
    argument: str,
    owner: dict[str, str],
    old: dict[str, str],
    new: dict[str, str],
) -> None:
    with pytest.raises(QuotaUsageError) as caught:
        await adopt(quota.project("acme"), old, new, owner)
    assert caught.value.argument == argument
    assert fake.requests == []
