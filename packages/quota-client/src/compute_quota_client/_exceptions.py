"""Every way a quota operation can fail, as one tree split by what the caller can do about it.

    QuotaError                       knows project, operation, HTTP status and server reason
    ├── QuotaUnavailableError        transport, timeout, 5xx, open circuit: try later
    │   └── QuotaThrottledError      429, or 503 with Retry-After: not before retry_after
    ├── QuotaAuthError               401, unreadable or expired credential: platform operator
    ├── QuotaRejectedError           403, 422: admission or rights: platform operator or caller
    ├── QuotaNamespaceNotFoundError  the claim's namespace is not in the project: caller
    ├── QuotaProjectNotFoundError    the project plane does not serve claims: caller
    ├── QuotaProtocolError           undecodable answer, wrong kind, other 4xx: bug
    └── QuotaUsageError              bad arguments; also a ValueError: bug

Verdicts (`Granted`, `Denied`, `Pending`, …) are values, not exceptions, and an error never grants.
No error carries a credential, and foreign text is cut: answers may quote what a tenant wrote, at
any length.
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
    """One reason inside a refusal: the field it is about, if told, and what is wrong with it."""

    field: str
    message: str


def cut(text: str) -> str:
    """Foreign text, at most 256 characters of it."""
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
    """The project plane cannot be asked right now: try later."""


class QuotaThrottledError(QuotaUnavailableError):
    """The project plane wants a pause, `retry_after`, longer than the operation may take."""

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
    """Admission or rights say no; `causes` names the fields where the server told them."""

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


class QuotaNamespaceNotFoundError(QuotaError):
    """The namespace of the claim does not exist in the project."""


class QuotaProjectNotFoundError(QuotaError):
    """The project plane does not serve claims: no such route, or the kind is not installed."""


class QuotaProtocolError(QuotaError):
    """The server's answer is not one this library understands."""


class QuotaUsageError(QuotaError, ValueError):
    """Bad arguments, found before anything was sent; `argument` names the one."""

    def __init__(self, message: str, *, argument: str, project: str | None = None) -> None:
        super().__init__(f"{argument}: {message}", project=project)
        self.argument = argument
