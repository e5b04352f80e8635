"""Errors from HTTP responses and connection failures: the only translation to `ReconcileError`.

| answer | becomes |
|---|---|
| 409, a failed `test` of a JSON patch, a UID that does not fit | `ConflictError` |
| 429 | `ThrottledError` with the time the server named |
| 5xx, timeout, connection lost | `UnavailableError`; `OutcomeUnknownError` for what mutates |
| 422, 413 | `InvalidSpecError` |
| 401, 403 | `ForbiddenError` |
| 403 with cause `ProjectSuspended` | `ProjectSuspendedError` |
| namespace gone or going | `RejectedError` with that reason |

The server's message quotes values of users and is kept apart, cut, for the owner of the object; the
logged message names only the operation, the plane and the status code. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_operator_kit.core.errors import (
    Cause,
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    OutcomeUnknownError,
    ProjectSuspendedError,
    ReconcileError,
    RejectedError,
    ServerAnswer,
    ThrottledError,
    UnavailableError,
)
from compute_operator_kit.core.json import (
    JsonObject,
    UndecodableError,
    decode_foreign,
    member_list,
    member_object,
    member_text,
)

MESSAGE_LIMIT: Final = 1024  # the longest message of a condition or an event
STORAGE_STARTS: Final = "storage is (re)initializing"  # text of the API server
CAUSE_LIMIT: Final = 16
# client-go's wait for a 429 without `Retry-After`
DEFAULT_RETRY_AFTER: Final = timedelta(seconds=1)
MOST_DIGITS: Final = 6  # eleven days in seconds
LONGEST_RETRY_AFTER: Final = timedelta(minutes=5)  # a wrong header must not park a plane for a day

NAMESPACE_ABSENT: Final = "NamespaceAbsent"
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
KIND_NOT_SERVED: Final = "KindNotServed"
PROJECT_SUSPENDED: Final = "ProjectSuspended"  # cause of Milo (suspension.md 1)


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """What the error of a request depends on."""

    doing: str  # "creating Instance 'ns/web-0' on 'hub'"
    plane: str
    is_mutating: bool = False
    is_json_patch: bool = False


def parse_status(status: int, body: bytes) -> ServerAnswer:
    """The `Status` object of a response; with any other body only the status code."""
    try:
        status_object = decode_foreign(body)
    except UndecodableError:
        return ServerAnswer(status)
    details = member_object(status_object, "details")
    causes = [
        item for item in member_list(details, "causes")[:CAUSE_LIMIT] if isinstance(item, dict)
    ]
    return ServerAnswer(
        status=status,
        reason=member_text(status_object, "reason")[:128],
        message=cut(member_text(status_object, "message")),
        kind=member_text(details, "kind")[:128],
        name=member_text(details, "name")[:253],
        causes=tuple(_parse_cause(item) for item in causes),
    )


def is_storage_starting(answer: ServerAnswer) -> bool:
    """Whether a 429 means that the storage of one kind starts (neighbours.md 2.1): it is no load
    signal, and other kinds of the plane are not affected.
    """
    return answer.status == 429 and STORAGE_STARTS in answer.message


def _parse_cause(item: JsonObject) -> Cause:
    return Cause(reason=member_text(item, "reason")[:128], field=member_text(item, "field")[:256])


def cut(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 3] + "..."


def parse_retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """The seconds of `Retry-After`; API servers do not use its date form."""
    text = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    if not (text.isascii() and text.isdigit()):
        return None
    if len(text) > MOST_DIGITS:  # `int` refuses what is longer than 4,300 digits
        return LONGEST_RETRY_AFTER
    return min(timedelta(seconds=int(text)), LONGEST_RETRY_AFTER)


def error_of_answer(
    request: RequestInfo, answer: ServerAnswer, retry_after: timedelta | None
) -> ReconcileError:
    """The error for an HTTP status that is not the expected one."""
    reason = answer.reason or f"HTTP{answer.status}"
    message = f"{request.doing}: the server answered {answer.status} {answer.reason}".rstrip()
    if answer.status == 429:
        wait = retry_after or DEFAULT_RETRY_AFTER
        return ThrottledError(reason, message, retry_after=wait, answer=answer, plane=request.plane)
    kind = _class_of(request, answer)
    return kind(_reason_of(answer) or reason, message, answer=answer, plane=request.plane)


def _class_of(request: RequestInfo, answer: ServerAnswer) -> type[ReconcileError]:
    match answer.status:
        case 409:
            return ConflictError
        case 422:
            return ConflictError if _has_moved_on(request, answer) else InvalidSpecError
        case 413:
            return InvalidSpecError
        case 401 | 403:
            return _class_of_forbidden(answer)
        case 404:
            # The namespace of a create does not exist; otherwise the kind is not served, which may
            # change.
            return RejectedError if answer.kind == "namespaces" else UnavailableError
        case code if 400 <= code < 500 and code not in {408, 410}:
            return RejectedError
        case _:
            return OutcomeUnknownError if request.is_mutating else UnavailableError


def _class_of_forbidden(answer: ServerAnswer) -> type[ReconcileError]:
    """Only the cause counts: a message is text for users, and any policy may quote it."""
    if is_project_suspended(answer):
        return ProjectSuspendedError
    return RejectedError if answer.has_cause(NAMESPACE_TERMINATING) else ForbiddenError


def is_project_suspended(answer: ServerAnswer) -> bool:
    return answer.status == 403 and answer.has_cause(PROJECT_SUSPENDED)


def error_of_suspension(request: RequestInfo) -> ReconcileError:
    """The error of a write that is not sent because the project refused one before."""
    message = f"{request.doing}: the project is suspended"
    return ProjectSuspendedError(PROJECT_SUSPENDED, message, plane=request.plane)


def _reason_of(answer: ServerAnswer) -> str:
    """A reason of our own where `NotFound` or `Forbidden` is ambiguous."""
    if is_project_suspended(answer):
        return PROJECT_SUSPENDED
    if answer.status == 403 and answer.has_cause(NAMESPACE_TERMINATING):
        return NAMESPACE_TERMINATING
    if answer.status == 404:
        return NAMESPACE_ABSENT if answer.kind == "namespaces" else KIND_NOT_SERVED
    return ""


def _has_moved_on(request: RequestInfo, answer: ServerAnswer) -> bool:
    """Whether a 422 means that the object has changed: a failed `test`, or another UID
    (management.md 14).
    """
    if any(cause.field == "metadata.uid" for cause in answer.causes):
        return True
    return request.is_json_patch and not any(cause.field for cause in answer.causes)


def error_of_connection(request: RequestInfo, cause: OSError) -> ReconcileError:
    """The error for a request without a response; `ConnectionRefusedError`: it was never sent."""
    was_sent = not isinstance(cause, ConnectionRefusedError)
    kind = OutcomeUnknownError if was_sent and request.is_mutating else UnavailableError
    reason, what = ("Timeout", "no answer in time")
    if not isinstance(cause, TimeoutError):
        reason = "ConnectionLost" if was_sent else "Unreachable"
        what = f"{'connection lost' if was_sent else 'no connection'} ({type(cause).__name__})"
    return kind(reason, f"{request.doing}: {what}", plane=request.plane)


def error_of_garbage(request: RequestInfo, cause: UndecodableError) -> ReconcileError:
    """The error for a successful response that cannot be decoded."""
    kind = OutcomeUnknownError if request.is_mutating else UnavailableError
    return kind("Garbled", f"{request.doing}: {cause}", plane=request.plane)
