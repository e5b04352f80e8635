"""The error that an HTTP answer means; pure, and the only module that maps HTTP statuses to errors.

    401            QuotaAuthError
    403, 422       QuotaRejectedError; QuotaProjectSuspendedError for 403 with that cause
    404            QuotaNamespaceNotFoundError or QuotaProjectNotFoundError on create, list, watch
    429            QuotaThrottledError, made where the pause is known
    5xx            QuotaUnavailableError
    anything else  QuotaProtocolError

404 on read, adopt and release is no error (`Absent`), nor are 409 on create, and 409 and 422 on
adopt: the operations handle those statuses first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from compute_quota_client._exceptions import (
    Cause,
    Operation,
    QuotaAuthError,
    QuotaError,
    QuotaNamespaceNotFoundError,
    QuotaProjectNotFoundError,
    QuotaProjectSuspendedError,
    QuotaProtocolError,
    QuotaRejectedError,
    QuotaThrottledError,
    QuotaUnavailableError,
    cut,
)
from compute_quota_client._wire import WireDetails, WireFailure

if TYPE_CHECKING:
    from datetime import timedelta

PROJECT_SUSPENDED: Final = "ProjectSuspended"  # the type of Milo's cause
GERUNDS: Final = {
    Operation.GET: "getting ResourceClaim",
    Operation.CREATE: "creating ResourceClaim",
    Operation.ADOPT: "adopting ResourceClaim",
    Operation.RELEASE: "releasing ResourceClaim",
    Operation.LIST: "listing ResourceClaims",
    Operation.WATCH: "watching ResourceClaims",
    Operation.NAMESPACE: "getting Namespace",
}
# Go's field errors: `spec.requests[2].resourceType: Invalid value: "x": why`. Several come in
# brackets, split by ", ".
_FIELD_ERROR: Final = (
    r"[a-z][\w.\[\]/-]*: (?:Invalid value|Forbidden|Duplicate value|Internal error|Required value"
    r"|Unsupported value|Not found|Too long|Too many)\b"
)
_INVALID: Final = re.compile(rf" is invalid: \[?(?P<errors>{_FIELD_ERROR}.*)", re.DOTALL)
_BETWEEN_ERRORS: Final = re.compile(rf", (?={_FIELD_ERROR})")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was tried, for messages: the operation, its project, and the object if there is one."""

    project: str
    operation: Operation
    target: str = ""

    def describe(self, cause: str) -> str:
        """The message of an error: gerund, object, project, cause."""
        target = f" {self.target!r}" if self.target else ""
        return f"{GERUNDS[self.operation]}{target} in project {self.project!r}: {cause}"

    def unavailable(self, cause: str, status: int | None = None) -> QuotaUnavailableError:
        """The plane is unavailable, for this cause."""
        return QuotaUnavailableError(
            self.describe(cause), project=self.project, operation=self.operation, status=status
        )

    def throttled(self, retry_after: timedelta, status: int | None) -> QuotaThrottledError:
        """The plane wants a pause longer than the operation."""
        cause = f"the server asks to wait {retry_after.total_seconds():.0f} s"
        return QuotaThrottledError(
            self.describe(cause),
            retry_after=retry_after,
            project=self.project,
            operation=self.operation,
            status=status,
        )

    def auth(self, cause: str, status: int | None = None) -> QuotaAuthError:
        """The credential is refused or cannot be read."""
        return QuotaAuthError(
            self.describe(cause), project=self.project, operation=self.operation, status=status
        )

    def protocol(self, cause: str, status: int | None = None) -> QuotaProtocolError:
        """The answer is not understood."""
        return QuotaProtocolError(
            self.describe(cut(cause)),
            project=self.project,
            operation=self.operation,
            status=status,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete HTTP answer; in `body` of a failure the credential is redacted."""

    status: int
    body: bytes
    retry_after: timedelta | None = None

    @property
    def failure(self) -> WireFailure | None:
        """The Kubernetes `Status` in the body, if there is one."""
        try:
            failure = WireFailure.model_validate_json(self.body)
        except ValidationError:
            return None
        return failure if failure.kind == "Status" else None


def error_of(attempt: Attempt, answer: Answer) -> QuotaError:
    """The error that `answer` means for `attempt`."""
    failure = answer.failure
    text = failure.message if failure else answer.body.decode(errors="replace").strip()
    message = attempt.describe(cut(text) or f"HTTP {answer.status}")
    kind, extra = _class_of(attempt.operation, answer.status, failure)
    if issubclass(kind, QuotaRejectedError):
        causes = causes_of(failure) if failure else ()
        error: QuotaError = kind(message, causes=causes)
    else:
        error = kind(message + extra)
    error.project = attempt.project
    error.operation = attempt.operation
    error.status = answer.status
    error.reason = cut(failure.reason) if failure and failure.reason else None
    return error


def _class_of(
    operation: Operation, status: int, failure: WireFailure | None
) -> tuple[type[QuotaError], str]:
    if status >= 500:
        return QuotaUnavailableError, ""
    if status == 401:
        return QuotaAuthError, ""
    if status == 403 and is_project_suspended(failure):
        return QuotaProjectSuspendedError, ""
    if status in {403, 422}:
        return QuotaRejectedError, ""
    if status == 404 and operation in {Operation.CREATE, Operation.LIST, Operation.WATCH}:
        details = (failure.details if failure else None) or WireDetails()
        if operation is Operation.CREATE and details.kind == "namespaces":
            return QuotaNamespaceNotFoundError, ""
        return QuotaProjectNotFoundError, ""
    return QuotaProtocolError, f" (unexpected HTTP {status})"


def is_project_suspended(failure: WireFailure | None) -> bool:
    """By the cause alone: a message is text for people, and any policy may quote it."""
    causes = failure.details.causes if failure and failure.details else ()
    return any(cause.reason == PROJECT_SUSPENDED for cause in causes)


def causes_of(failure: WireFailure) -> tuple[Cause, ...]:
    """The refused fields, from `details` or from Milo's message; empty where neither has any."""
    if failure.details and failure.details.causes:
        return tuple(Cause(cut(c.field), cut(c.message)) for c in failure.details.causes)
    match = _INVALID.search(failure.message)
    if match is None:
        return ()
    errors = match["errors"]
    # The list's own closing bracket; an error that ends in a bracketed list keeps its own.
    if errors.endswith("]") and errors.count("]") > errors.count("["):
        errors = errors[:-1]
    pairs = (error.partition(": ") for error in _BETWEEN_ERRORS.split(errors))
    return tuple(Cause(cut(field), cut(detail)) for field, _, detail in pairs)
