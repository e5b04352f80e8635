"""Translates what a server or a connection said into one of our errors, once, at the border. Pure.

| answer | becomes |
|---|---|
| 409, a failed `test` of a JSON patch, a UID that does not fit | `ConflictError` |
| 429 | `ThrottledError` with the time the server named |
| 5xx, timeout, connection lost | `UnavailableError`; `OutcomeUnknownError` for what mutates |
| 422, 413 | `InvalidSpecError` |
| 401, 403 | `ForbiddenError` |
| namespace gone or going | `RejectedError` with that reason |

The server's text is kept apart, cut, for the owner of the object; the message we log names the act,
the place and the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_operator_kit.errors import (
    Cause,
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
from compute_operator_kit.wire import (
    JsonObject,
    UndecodableError,
    decode_foreign,
    member_list,
    member_object,
    member_text,
)

MESSAGE_LIMIT: Final = 1024  # the longest a condition or an event may be; more has no reader
STORAGE_STARTS: Final = "storage is (re)initializing"  # the API server's own words
CAUSE_LIMIT: Final = 16
# client-go's wait when a server throttles without saying for how long
DEFAULT_RETRY_AFTER: Final = timedelta(seconds=1)
MOST_DIGITS: Final = 6  # eleven days in seconds
LONGEST_RETRY_AFTER: Final = timedelta(minutes=5)  # a wrong header must not park a plane for a day

NAMESPACE_ABSENT: Final = "NamespaceAbsent"
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
KIND_NOT_SERVED: Final = "KindNotServed"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked, as far as its failure must be judged and named."""

    doing: str  # "creating Instance 'ns/web-0' on 'hub'"
    plane: str
    is_mutating: bool = False
    is_json_patch: bool = False


def parse_status(status: int, body: bytes) -> ServerAnswer:
    """The server's own words; a body that is not a `Status` object leaves the code alone."""
    try:
        found = decode_foreign(body)
    except UndecodableError:
        return ServerAnswer(status)
    details = member_object(found, "details")
    causes = [
        item for item in member_list(details, "causes")[:CAUSE_LIMIT] if isinstance(item, dict)
    ]
    return ServerAnswer(
        status=status,
        reason=member_text(found, "reason")[:128],
        message=cut(member_text(found, "message")),
        kind=member_text(details, "kind")[:128],
        name=member_text(details, "name")[:253],
        causes=tuple(_parse_cause(item) for item in causes),
    )


def is_storage_starting(answer: ServerAnswer) -> bool:
    """Whether a 429 only means that the storage of one kind starts, as while an API server itself
    starts (neighbours.md 2.1): it is neither load nor about the plane.
    """
    return answer.status == 429 and STORAGE_STARTS in answer.message


def _parse_cause(found: JsonObject) -> Cause:
    return Cause(reason=member_text(found, "reason")[:128], field=member_text(found, "field")[:256])


def cut(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 3] + "..."


def parse_retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """Seconds of `Retry-After`; its date form is not used by API servers and needs a
    shared clock.
    """
    text = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    if not (text.isascii() and text.isdigit()):
        return None
    if len(text) > MOST_DIGITS:  # `int` refuses what is longer than 4,300 digits
        return LONGEST_RETRY_AFTER
    return min(timedelta(seconds=int(text)), LONGEST_RETRY_AFTER)


def error_of_answer(
    request: Request, answer: ServerAnswer, retry_after: timedelta | None
) -> ReconcileError:
    """The error for an HTTP status that is not the expected one."""
    reason = answer.reason or f"HTTP{answer.status}"
    message = f"{request.doing}: the server answered {answer.status} {answer.reason}".rstrip()
    if answer.status == 429:
        wait = retry_after or DEFAULT_RETRY_AFTER
        return ThrottledError(reason, message, retry_after=wait, answer=answer, plane=request.plane)
    kind = _class_of(request, answer)
    return kind(_reason_of(answer) or reason, message, answer=answer, plane=request.plane)


def _class_of(request: Request, answer: ServerAnswer) -> type[ReconcileError]:
    match answer.status:
        case 409:
            return ConflictError
        case 422:
            return ConflictError if _has_moved_on(request, answer) else InvalidSpecError
        case 413:
            return InvalidSpecError
        case 401 | 403:
            terminating = answer.has_cause(NAMESPACE_TERMINATING)
            return RejectedError if terminating else ForbiddenError
        case 404:
            # The namespace of a create: known answer. Otherwise the kind is not served, which
            # passes.
            return RejectedError if answer.kind == "namespaces" else UnavailableError
        case code if 400 <= code < 500 and code not in {408, 410}:
            return RejectedError
        case _:
            return OutcomeUnknownError if request.is_mutating else UnavailableError


def _reason_of(answer: ServerAnswer) -> str:
    """Words of our own where the server's `NotFound` or `Forbidden` would hide what happened."""
    if answer.status == 403 and answer.has_cause(NAMESPACE_TERMINATING):
        return NAMESPACE_TERMINATING
    if answer.status == 404:
        return NAMESPACE_ABSENT if answer.kind == "namespaces" else KIND_NOT_SERVED
    return ""


def _has_moved_on(request: Request, answer: ServerAnswer) -> bool:
    """A 422 that means "no longer as you saw it": a failed `test`, or another UID
    (management.md 14).
    """
    if any(cause.field == "metadata.uid" for cause in answer.causes):
        return True
    return request.is_json_patch and not any(cause.field for cause in answer.causes)


def error_of_connection(request: Request, cause: OSError) -> ReconcileError:
    """The error for a request without an answer; `ConnectionRefusedError` means it was
    never sent.
    """
    was_sent = not isinstance(cause, ConnectionRefusedError)
    kind = OutcomeUnknownError if was_sent and request.is_mutating else UnavailableError
    reason, what = ("Timeout", "no answer in time")
    if not isinstance(cause, TimeoutError):
        reason = "ConnectionLost" if was_sent else "Unreachable"
        what = f"{'connection lost' if was_sent else 'no connection'} ({type(cause).__name__})"
    return kind(reason, f"{request.doing}: {what}", plane=request.plane)


def error_of_garbage(request: Request, cause: UndecodableError) -> ReconcileError:
    """The error for an answer that says success and cannot be read."""
    kind = OutcomeUnknownError if request.is_mutating else UnavailableError
    return kind("Garbled", f"{request.doing}: {cause}", plane=request.plane)
