from __future__ import annotations

from datetime import timedelta

import orjson
import pytest

from compute_operator_kit.client.status_errors import (
    RequestInfo,
    error_of_answer,
    error_of_connection,
    error_of_garbage,
    parse_retry_after,
    parse_status,
)
from compute_operator_kit.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    OutcomeUnknownError,
    ReconcileError,
    RejectedError,
    ServerAnswer,
    ThrottledError,
    UnavailableError,
)
from compute_operator_kit.core.json import UndecodableError

READ = RequestInfo("reading Note 'default/web' on 'hub'", "hub")
WRITE = RequestInfo("creating Note 'default/web' on 'hub'", "hub", is_mutating=True)
JSON_PATCH = RequestInfo("patching Note", "hub", is_mutating=True, is_json_patch=True)


def status_body(code: int, **members: object) -> bytes:
    return orjson.dumps({"kind": "Status", "apiVersion": "v1", "code": code, **members})


def judge(request: RequestInfo, code: int, **members: object) -> ReconcileError:
    answer = parse_status(code, status_body(code, **members))
    return error_of_answer(request, answer, None)


@pytest.mark.fault("C1")
def test_a_conflict_is_a_conflict() -> None:
    assert type(judge(WRITE, 409, reason="Conflict")) is ConflictError


@pytest.mark.fault("C3")
def test_a_throttling_server_names_the_time_or_gets_a_second() -> None:
    told = error_of_answer(READ, ServerAnswer(429), timedelta(seconds=5))
    untold = error_of_answer(READ, ServerAnswer(429), None)
    assert isinstance(told, ThrottledError)
    assert isinstance(untold, ThrottledError)
    assert (told.retry_after, untold.retry_after) == (timedelta(seconds=5), timedelta(seconds=1))


@pytest.mark.fault("C4")
@pytest.mark.parametrize("code", [500, 502, 503, 504, 408, 302])
def test_a_broken_server_leaves_a_write_unknown_and_a_read_to_try_again(code: int) -> None:
    assert type(judge(READ, code)) is UnavailableError
    assert type(judge(WRITE, code)) is OutcomeUnknownError


@pytest.mark.fault("C6")
@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_credential_is_the_platform_operators_turn(code: int) -> None:
    assert type(judge(WRITE, code, reason="Forbidden")) is ForbiddenError


@pytest.mark.fault("C6")
def test_a_terminating_namespace_differs_from_a_missing_right() -> None:
    causes = [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]
    error = judge(WRITE, 403, reason="Forbidden", details={"causes": causes})
    assert type(error) is RejectedError
    assert error.reason == "NamespaceTerminating"


@pytest.mark.fault("C6")
def test_a_create_in_a_namespace_that_is_gone_says_so() -> None:
    error = judge(WRITE, 404, reason="NotFound", details={"kind": "namespaces", "name": "x"})
    assert type(error) is RejectedError
    assert error.reason == "NamespaceAbsent"


@pytest.mark.fault("B10")
def test_a_404_that_names_no_object_means_that_the_kind_is_not_served() -> None:
    error = error_of_answer(READ, parse_status(404, b"404 page not found\n"), None)
    assert type(error) is UnavailableError
    assert error.reason == "KindNotServed"


@pytest.mark.fault("C6")
def test_a_field_that_does_not_validate_is_the_users_turn() -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "spec.replicas"}]
    for request in (WRITE, JSON_PATCH):
        error = judge(request, 422, reason="Invalid", details={"causes": causes})
        assert type(error) is InvalidSpecError
    assert type(judge(WRITE, 413)) is InvalidSpecError


def test_a_failed_test_of_a_json_patch_means_that_the_world_moved_on() -> None:
    assert type(judge(JSON_PATCH, 422, reason="Invalid")) is ConflictError
    assert type(judge(WRITE, 422, reason="Invalid")) is InvalidSpecError


def test_another_uid_means_that_the_world_moved_on() -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]
    assert type(judge(WRITE, 422, details={"causes": causes})) is ConflictError


def test_other_refusals_are_not_tried_again() -> None:
    assert type(judge(WRITE, 400)) is RejectedError
    assert type(judge(WRITE, 405)) is RejectedError


def test_the_message_names_act_and_code_and_nothing_the_server_wrote() -> None:
    error = judge(WRITE, 422, reason="Invalid", message='spec.token: Invalid value: "s3cret"')
    assert str(error) == f"{WRITE.doing}: the server answered 422 Invalid"
    assert error.answer is not None
    assert "s3cret" in error.answer.message
    assert error.plane == "hub"


def test_foreign_text_is_cut() -> None:
    long = "x" * 5000
    answer = parse_status(
        422,
        status_body(
            422,
            message=long,
            reason=long,
            details={"causes": [{"reason": long, "field": long}] * 100},
        ),
    )
    assert len(answer.message) == 1024
    assert answer.message.endswith("...")
    assert (len(answer.reason), len(answer.causes)) == (128, 16)
    assert len(answer.causes[0].field) == 256


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"\xff\xfe", b'{"details": 7, "reason": 3}']
)
def test_a_body_that_is_no_status_leaves_the_code_alone(body: bytes) -> None:
    assert parse_status(500, body) == ServerAnswer(500)


@pytest.mark.parametrize(
    ("header", "expected"),
    [("5", 5), ("0", 0), ("86400", 300), ("999999999999999999999", 300)],
)
def test_a_pause_is_read_in_seconds_and_has_an_end(header: str, expected: int) -> None:
    assert parse_retry_after({"retry-AFTER": header}) == timedelta(seconds=expected)


@pytest.mark.parametrize("header", ["", "soon", "-1", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT", "²"])
def test_a_pause_that_is_no_number_is_none(header: str) -> None:
    assert parse_retry_after({"Retry-After": header}) is None
    assert parse_retry_after({}) is None


@pytest.mark.fault("C4", "C5")
@pytest.mark.parametrize(
    ("cause", "reason", "write"),
    [
        (ConnectionRefusedError(), "Unreachable", UnavailableError),
        (ConnectionResetError(), "ConnectionLost", OutcomeUnknownError),
        (TimeoutError(), "Timeout", OutcomeUnknownError),
    ],
)
def test_a_write_without_an_answer_is_unknown_unless_it_was_never_sent(
    cause: OSError, reason: str, write: type[ReconcileError]
) -> None:
    assert type(error_of_connection(READ, cause)) is UnavailableError
    error = error_of_connection(WRITE, cause)
    assert type(error) is write
    assert error.reason == reason


def test_an_answer_that_cannot_be_read_leaves_a_write_unknown() -> None:
    garbage = UndecodableError("decoding JSON: invalid at byte 3")
    assert type(error_of_garbage(READ, garbage)) is UnavailableError
    assert type(error_of_garbage(WRITE, garbage)) is OutcomeUnknownError
