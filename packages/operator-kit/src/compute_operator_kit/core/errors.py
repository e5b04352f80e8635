"""All errors of the runtime, by what must happen: a retry, or an act of a user or an operator.

```
ReconcileError              reason (a word) and message (a sentence)
├── TransientError          back-off with jitter
│   ├── ConflictError       another writer was first: quick retry, no event
│   ├── ThrottledError      waits at least retry_after
│   ├── LimitExceededError  a list or a cache of a plane exceeds its limit: rare retry
│   └── UnavailableError    plane or service away: bounded wait, per plane
│       ├── BreakerOpenError      not sent: the plane does not answer
│       └── OutcomeUnknownError   sent without a response: read before sending again
├── RejectedError           no retry until the object, or anything it depends on, changes
│   ├── InvalidSpecError    the user must act: condition
│   ├── ForbiddenError      the platform operator must act: log and metric
│   └── ProjectSuspendedError   the project is suspended: no error, its keys wait for the resume
├── PlaneGoneError          the plane was disengaged during the reconcile: dropped
└── InvariantError          a bug: trace, counter, slow retry
```

Expected answers (absent, already exists, not served) are values, not errors. The message of a
server never enters `str(error)`, which is logged: a validation message quotes values of users. This
module imports nothing and knows no wire format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from typing_extensions import override


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `details.causes` of a Status: reason and field, without the value."""

    reason: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The Status object of a refused request; `message` is cut, and for the owner of the object
    only.
    """

    status: int
    reason: str = ""
    message: str = ""
    kind: str = ""  # details.kind: "namespaces" in a 404 of a create: the namespace is gone
    name: str = ""  # details.name: empty in a 404 of a kind that is not served
    causes: tuple[Cause, ...] = ()

    def has_cause(self, reason: str) -> bool:
        return any(cause.reason == reason for cause in self.causes)


class ReconcileError(Exception):
    """An error of a reconcile; `reason` is one word, `message` one sentence."""

    def __init__(
        self, reason: str, message: str, *, answer: ServerAnswer | None = None, plane: str = ""
    ) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message
        self.answer = answer
        self.plane = plane  # the plane that failed, if any: its state decides about retries

    @override
    def __str__(self) -> str:
        return self.message

    @property
    def status(self) -> int | None:
        """The HTTP status of the response, if there was one."""
        return self.answer.status if self.answer else None


class TransientError(ReconcileError):
    """To be retried, with back-off and jitter."""


class ConflictError(TransientError):
    """Another writer was first: read again and plan again, at once."""


class ThrottledError(TransientError):
    """The plane asked to wait (429); nothing was carried out."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        retry_after: timedelta,
        answer: ServerAnswer | None = None,
        plane: str = "",
    ) -> None:
        super().__init__(reason, message, answer=answer, plane=plane)
        self.retry_after = retry_after


class LimitExceededError(TransientError):
    """A list or a cache of a plane exceeds its limit; other planes are not affected."""


class UnavailableError(TransientError):
    """The plane or service does not answer, or answers 5xx."""


class BreakerOpenError(UnavailableError):
    """Not sent: the plane did not answer other requests, and its circuit breaker is open."""


class OutcomeUnknownError(UnavailableError):
    """A mutating request was sent and not answered: it may have been carried out, so read before
    sending again.
    """


class RejectedError(ReconcileError):
    """The plane rejected the request, and will reject it again until an object changes."""


class InvalidSpecError(RejectedError):
    """The object is invalid; its user must act."""


class ForbiddenError(RejectedError):
    """The operator lacks a permission; the platform operator must act."""


class ProjectSuspendedError(RejectedError):
    """The project is suspended and refuses every create and update; nothing is wrong, and the key
    is parked until the project resumes.
    """


class PlaneGoneError(ReconcileError):
    """The plane is not engaged; its keys are dropped, not retried."""


class InvariantError(ReconcileError):
    """An invariant is broken: a bug."""

    def __init__(self, message: str) -> None:
        super().__init__("InvariantViolated", message)


# The worst first; a subclass that is not listed counts as its parent.
SEVERITY: Final[tuple[type[ReconcileError], ...]] = (
    InvariantError,
    ForbiddenError,
    RejectedError,
    UnavailableError,
    ThrottledError,
    ConflictError,
    TransientError,
    PlaneGoneError,
    ProjectSuspendedError,
    ReconcileError,
)


def iter_leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors inside nested exception groups, in order; a single error is its own leaf."""
    inside = inner_errors(error)
    if not inside:
        yield error
    for inner in inside:
        yield from iter_leaves(inner)


def inner_errors(error: BaseException) -> tuple[BaseException, ...]:
    """The errors of a group; empty for a single error."""
    match error:
        case BaseExceptionGroup(exceptions=exceptions):
            return tuple(exceptions)
        case _:
            return ()


def find_worst(errors: Iterable[ReconcileError]) -> ReconcileError | None:
    """The error with the worst class; among equals the first."""
    return min(errors, key=severity_of, default=None)


def severity_of(error: ReconcileError) -> int:
    """The index of an error's class in `SEVERITY`; 0 is the worst."""
    return min(SEVERITY.index(known) for known in type(error).__mro__ if known in SEVERITY)
