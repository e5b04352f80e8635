"""The errors of quota operations, as one tree split by what the caller can do about them.

    QuotaError                       knows project, operation, HTTP status and server reason
    ├── QuotaUnavailableError        transport, timeout, 5xx, open circuit: try later
    │   └── QuotaThrottledError      429, or 503 with Retry-After: not before retry_after
    ├── QuotaAuthError               401, unreadable or expired credential: platform operator
    ├── QuotaRejectedError           403, 422: admission or rights: platform operator or caller
    │   └── QuotaProjectSuspendedError   403: the project is suspended: try after its resume
    ├── QuotaNamespaceNotFoundError  the claim's namespace is not in the project: caller
    ├── QuotaProjectNotFoundError    the project plane does not serve claims: caller
    ├── QuotaProtocolError           undecodable answer, wrong kind, other 4xx: bug
    └── QuotaUsageError              bad arguments; also a ValueError: bug

Verdicts (`Granted`, `Denied`, `Pending`, …) are values, not exceptions, and an error never grants.
No error carries a credential, and text of a server is cut: it may quote a tenant's values, at any
length.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import timedelta

# docs/spec/quota.md A3: bodies are cut to 256 characters.
MAX_FOREIGN_TEXT: Final = 256


class Operation(StrEnum):
    """The step that failed. One call may take several: `claim` gets, then creates."""

    GET = "get"
    CREATE = "create"
    ADOPT = "adopt"
    RELEASE = "release"
    LIST = "list"
    WATCH = "watch"
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason of a refusal: its field, empty where the server names none, and the problem."""

    field: str
    message: str


def cut(text: str) -> str:
    """At most 256 characters of a server's text."""
    return text if len(text) <= MAX_FOREIGN_TEXT else text[: MAX_FOREIGN_TEXT - 1] + "…"


class QuotaError(Exception):
    """Anything this library raises; `project`, `operation`, HTTP `status` and server `reason` are
    None where there is none.
    """

    def __init__(
        self,
        message: str,
        *,
        project: str | None = None,
        operation: Operation | None = None,
        status: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.project = project
        self.operation = operation
        self.status = status
        self.reason = reason


class QuotaUnavailableError(QuotaError):
    """The project plane is not available now: try later."""


class QuotaThrottledError(QuotaUnavailableError):
    """The project plane asks for a pause, `retry_after`, longer than the operation may take."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: timedelta,
        project: str | None = None,
        operation: Operation | None = None,
        status: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(
            message, project=project, operation=operation, status=status, reason=reason
        )
        self.retry_after = retry_after


class QuotaAuthError(QuotaError):
    """The credential is refused, unreadable or expired."""


class QuotaRejectedError(QuotaError):
    """Refused by admission or for lack of rights; `causes` has the fields the server names."""

    def __init__(
        self,
        message: str,
        *,
        causes: tuple[Cause, ...] = (),
        project: str | None = None,
        operation: Operation | None = None,
        status: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(
            message, project=project, operation=operation, status=status, reason=reason
        )
        self.causes = causes


class QuotaProjectSuspendedError(QuotaRejectedError):
    """The project is suspended and accepts no new claim and no change of one; reads and releases
    still work. Nothing is wrong with the claim: ask again after the resume.
    """


class QuotaNamespaceNotFoundError(QuotaError):
    """The namespace of the claim does not exist in the project."""


class QuotaProjectNotFoundError(QuotaError):
    """The project plane does not serve claims: no such route, or the kind is not installed."""


class QuotaProtocolError(QuotaError):
    """The server's answer cannot be decoded, or has an unexpected kind or status."""


class QuotaUsageError(QuotaError, ValueError):
    """A bad argument, refused before anything is sent; `argument` names it."""

    def __init__(self, message: str, *, argument: str, project: str | None = None) -> None:
        super().__init__(f"{argument}: {message}", project=project)
        self.argument = argument
