import json
import logging
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from compute_quota_client import (
    Absent,
    Cause,
    Operation,
    Pending,
    QuotaAuthError,
    QuotaClient,
    QuotaError,
    QuotaNamespaceNotFoundError,
    QuotaProjectNotFoundError,
    QuotaProjectSuspendedError,
    QuotaProtocolError,
    QuotaRejectedError,
    QuotaThrottledError,
    QuotaUnavailableError,
)
from compute_quota_client._answers import Answer, Attempt, error_of
from compute_quota_client.testing import Failure, FakeQuota, a_claim

LONG = "x" * 10_000


async def error_on_create(
    fake: FakeQuota, quota: QuotaClient, *failures: Failure | type[httpx.TransportError]
) -> QuotaError:
    fake.fail_next(Operation.CREATE, *failures)
    with pytest.raises(QuotaError) as caught:
        await quota.project("acme").claim(a_claim())
    return caught.value


async def error_on_read(
    fake: FakeQuota, quota: QuotaClient, *failures: Failure | type[httpx.TransportError]
) -> QuotaError:
    fake.fail_next(Operation.GET, *failures)
    with pytest.raises(QuotaError) as caught:
        await quota.project("acme").read("default", "bucket-logs")
    return caught.value


@pytest.mark.spec("Q-07")
async def test_a_created_claim_is_pending(quota: QuotaClient) -> None:
    assert isinstance(await quota.project("acme").claim(a_claim()), Pending)


@pytest.mark.spec("Q-07")
@pytest.mark.parametrize(
    ("failures", "kind"),
    [
        ([Failure(403, "Forbidden")], QuotaRejectedError),
        ([Failure(422, "Invalid")], QuotaRejectedError),
        ([Failure(400, "BadRequest")], QuotaProtocolError),
        ([Failure(405)], QuotaProtocolError),
        ([Failure(302)], QuotaProtocolError),
        ([Failure(401, "Unauthorized")] * 2, QuotaAuthError),
        ([Failure(500, "InternalError")] * 2, QuotaUnavailableError),
        ([Failure(503)] * 2, QuotaUnavailableError),
        ([Failure(429, retry_after=11)], QuotaThrottledError),
        ([Failure(503, retry_after=11)], QuotaThrottledError),
    ],
)
async def test_each_answer_to_a_create_becomes_its_error(
    fake: FakeQuota, quota: QuotaClient, failures: list[Failure], kind: type[QuotaError]
) -> None:
    error = await error_on_create(fake, quota, *failures)
    assert type(error) is kind
    assert error.project == "acme"
    assert error.operation in {Operation.CREATE, Operation.GET}
    assert error.status == failures[0].status
    assert "'acme'" in str(error)


@pytest.mark.spec("Q-07")
async def test_an_error_knows_project_operation_status_and_reason(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    error = await error_on_create(fake, quota, Failure(403, "Forbidden", "no, because"))
    assert (error.project, error.operation, error.status, error.reason) == (
        "acme",
        Operation.CREATE,
        403,
        "Forbidden",
    )
    message = "creating ResourceClaim 'default/bucket-logs' in project 'acme': no, because"
    assert str(error) == message


@pytest.mark.spec("Q-07")
async def test_a_throttled_error_has_the_pause(fake: FakeQuota, quota: QuotaClient) -> None:
    error = await error_on_create(fake, quota, Failure(429, retry_after=60))
    assert isinstance(error, QuotaThrottledError)
    assert isinstance(error, QuotaUnavailableError)
    assert timedelta(seconds=59) < error.retry_after <= timedelta(seconds=60)


@pytest.mark.spec("Q-07")
@pytest.mark.parametrize(
    "failure",
    [
        Failure(403, "Forbidden", LONG),
        Failure(403, LONG, "short"),
        Failure(400, body=LONG.encode()),
        Failure(404, body=LONG.encode()),
        Failure(422, "Invalid", f'x "y" is invalid: spec.requests[0].amount: Forbidden: {LONG}'),
    ],
)
async def test_no_error_carries_more_than_256_characters_of_a_body(
    fake: FakeQuota, quota: QuotaClient, failure: Failure
) -> None:
    error = await error_on_create(fake, quota, failure)
    texts = [str(error), error.reason or ""]
    if isinstance(error, QuotaRejectedError):
        texts += [part for cause in error.causes for part in (cause.field, cause.message)]
    assert all(text.count("x") <= 256 for text in texts)


@pytest.mark.spec("Q-07")
@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[]", b"{}", b'{"kind": "Secret", "metadata": {}}']
)
async def test_an_answer_that_is_no_claim_is_a_protocol_error(
    fake: FakeQuota, quota: QuotaClient, body: bytes
) -> None:
    error = await error_on_read(fake, quota, Failure(200, body=body))
    assert type(error) is QuotaProtocolError


@pytest.mark.parametrize("depth", [130, 900, 100_000])
async def test_an_answer_that_is_too_deep_is_a_protocol_error_by_its_limit(
    fake: FakeQuota, quota: QuotaClient, depth: int
) -> None:
    body = b'{"kind": "ResourceClaim", "metadata": ' + b"[" * depth + b"]" * depth + b"}"
    error = await error_on_read(fake, quota, Failure(200, body=body))
    assert type(error) is QuotaProtocolError
    assert "the answer is nested deeper than 128 levels" in str(error)


@pytest.mark.spec("Q-07")
async def test_another_claim_than_the_one_asked_for_is_a_protocol_error(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    await project.claim(a_claim())
    other = str(fake.claim_json("acme", "default", "bucket-logs")).replace("'", '"')
    error = await error_on_read(
        fake, quota, Failure(200, body=other.replace("bucket-logs", "bucket-x").encode())
    )
    assert type(error) is QuotaProtocolError


@pytest.mark.spec("Q-08")
async def test_a_403_that_wraps_an_invalid_gives_its_causes(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    message = (
        'resourceclaims.quota.miloapis.com "b4" is forbidden: ResourceClaim.quota.miloapis.com "b4"'
        " is invalid: [spec.requests[0].resourceType: Forbidden: resource type a/W does not satisfy"
        " claiming rules for x/y. Allowed claiming resources: [a/I, b/P],"
        " spec.requests[1].amount: Invalid value: 0: amount must be greater than 0]"
    )
    error = await error_on_create(fake, quota, Failure(403, "Forbidden", message))
    assert isinstance(error, QuotaRejectedError)
    assert error.causes == (
        Cause(
            "spec.requests[0].resourceType",
            "Forbidden: resource type a/W does not satisfy claiming rules for x/y."
            " Allowed claiming resources: [a/I, b/P]",
        ),
        Cause("spec.requests[1].amount", "Invalid value: 0: amount must be greater than 0"),
    )


@pytest.mark.spec("Q-08")
async def test_a_single_cause_comes_without_brackets(fake: FakeQuota, quota: QuotaClient) -> None:
    message = 'x "n" is forbidden: X "n" is invalid: spec.requests[0].amount: Invalid value: 0: low'
    error = await error_on_create(fake, quota, Failure(403, "Forbidden", message))
    assert isinstance(error, QuotaRejectedError)
    assert error.causes == (Cause("spec.requests[0].amount", "Invalid value: 0: low"),)


@pytest.mark.spec("Q-08")
@pytest.mark.parametrize(
    "message",
    ["User 'x' cannot create", 'x "n" is invalid: whatever', "is invalid: [", "ümläut"],
)
async def test_a_403_that_cannot_be_parsed_is_kept_as_it_is(
    fake: FakeQuota, quota: QuotaClient, message: str
) -> None:
    error = await error_on_create(fake, quota, Failure(403, "Forbidden", message))
    assert isinstance(error, QuotaRejectedError)
    assert error.causes == ()
    assert str(error).endswith(f": {message}")


@pytest.mark.spec("Q-08")
def test_causes_in_details_are_taken_from_there() -> None:
    body = (
        b'{"kind":"Status","code":403,"reason":"Forbidden","message":"denied",'
        b'"details":{"causes":[{"message":"policy says no"},{"field":"spec","message":"bad"}]}}'
    )
    error = error_of(Attempt("acme", Operation.CREATE), Answer(403, body))
    assert isinstance(error, QuotaRejectedError)
    assert error.causes == (Cause("", "policy says no"), Cause("spec", "bad"))


@pytest.mark.spec("Q-08")
async def test_a_404_of_the_namespace_is_distinguished_from_any_other(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    with pytest.raises(QuotaNamespaceNotFoundError):
        await quota.project("acme").claim(replace(a_claim(), namespace="nope"))
    with pytest.raises(QuotaNamespaceNotFoundError):
        await quota.project("never-made").claim(a_claim())
    for failure in (
        Failure(404, "NotFound", "the server could not find the requested resource"),
        Failure(404, body=b"404 page not found\n"),
        Failure(404, body=b""),
    ):
        error = await error_on_create(fake, quota, failure)
        assert type(error) is QuotaProjectNotFoundError


@pytest.mark.spec("Q-08")
async def test_a_404_on_list_is_no_project_and_on_read_adopt_and_release_absence(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    missing = Failure(404, body=b"404 page not found\n")
    fake.fail_next(Operation.LIST, missing)
    with pytest.raises(QuotaProjectNotFoundError):
        await project.list()
    for _ in range(2):
        fake.fail_next(Operation.GET, missing)
        assert await project.read("default", "bucket-logs") == Absent()
    await project.claim(a_claim())
    fake.fail_next(Operation.RELEASE, missing)
    released = await project.release(
        "default", "bucket-logs", owner=a_claim().owner, subject=a_claim().subject
    )
    assert released == Absent()
    fake.fail_next(Operation.ADOPT, missing)
    adopted = await project.adopt(
        "default",
        "bucket-logs",
        owner=a_claim().owner,
        old_subject=a_claim().subject,
        new_subject=dict.fromkeys(a_claim().subject, "uid-2"),
    )
    assert adopted == Absent()


@pytest.mark.spec("Q-08")
async def test_the_uid_of_a_namespace_or_its_absence_is_read(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    uid = await project.namespace_uid("default")
    assert isinstance(uid, str)
    assert uid != await quota.project("other").namespace_uid("default")
    assert await project.namespace_uid("nope") == Absent()
    for body in (b"{}", b'{"kind": "Secret", "metadata": {"uid": "1"}}'):
        fake.fail_next(Operation.NAMESPACE, Failure(200, body=body))
        with pytest.raises(QuotaProtocolError):
            await project.namespace_uid("default")
    fake.fail_next(Operation.NAMESPACE, Failure(403, "Forbidden"))
    with pytest.raises(QuotaRejectedError):
        await project.namespace_uid("default")


@pytest.mark.spec("Q-07")
async def test_nothing_above_debug_is_logged_for_ordinary_work(
    fake: FakeQuota, quota: QuotaClient, caplog: pytest.LogCaptureFixture
) -> None:
    fake.fail_next(Operation.LIST, Failure(429, retry_after=1))
    with caplog.at_level(logging.DEBUG):
        await quota.project("fresh").list()
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


@pytest.mark.spec("SU-03")
async def test_a_suspended_project_refuses_claims_by_an_error_of_its_own(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    kept = await project.claim(a_claim())
    assert isinstance(kept, Pending)
    fake.knobs.suspended.add("acme")
    with pytest.raises(QuotaProjectSuspendedError, match="is suspended") as caught:
        await project.claim(replace(a_claim(), name="other"))
    assert isinstance(caught.value, QuotaRejectedError)
    assert (caught.value.status, caught.value.operation) == (403, Operation.CREATE)
    with pytest.raises(QuotaProjectSuspendedError):
        await project.adopt(
            kept.found.namespace,
            kept.found.name,
            owner=a_claim().owner,
            old_subject=a_claim().subject,
            new_subject=dict.fromkeys(a_claim().subject, "other"),
        )
    assert isinstance(await project.read(kept.found.namespace, kept.found.name), Pending)
    await project.release(kept.found.namespace, kept.found.name, uid=kept.found.uid)
    fake.knobs.suspended.clear()
    assert isinstance(await project.claim(replace(a_claim(), name="other")), Pending)


@pytest.mark.spec("SU-02")
@pytest.mark.parametrize(
    ("status", "cause", "message"),
    [
        (403, "FieldValueInvalid", 'project "p" is suspended (Fraud)'),
        (403, "", "ProjectSuspended"),
        (422, "ProjectSuspended", "no"),
    ],
)
def test_another_refusal_is_no_suspension(status: int, cause: str, message: str) -> None:
    body: dict[str, object] = {
        "kind": "Status",
        "message": message,
        "details": {"causes": [{"reason": cause, "message": message}]},
    }
    attempt = Attempt("acme", Operation.CREATE, "c")
    error = error_of(attempt, Answer(status, json.dumps(body).encode()))
    assert type(error) is QuotaRejectedError
