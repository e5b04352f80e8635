"""Every error the runtime knows, split by what somebody has to do about it.

```
ReconcileError              reason (a word) and message (a sentence)
├── TransientError          back-off with jitter
│   ├── ConflictError       somebody wrote first: quick, quiet, no event
│   ├── ThrottledError      waits at least retry_after
│   ├── LimitExceededError  a plane holds or answers more than is taken of one: seldom
│   └── UnavailableError    plane or service away: bounded wait, kept per plane
│       ├── BreakerOpenError      not sent: the plane does not answer
│       └── OutcomeUnknownError   sent, no answer: read before sending again
├── RejectedError           no retry until the object, or anything it depends on, changes
│   ├── InvalidSpecError    the user's turn: condition
│   └── ForbiddenError      the platform operator's turn: log and metric
├── PlaneGoneError          the plane was disengaged while we worked: dropped in one place
└── InvariantError          our bug: trace, counter, slow retry
```

Three questions choose the class: retry? the user's turn? ours? Answers that are expected (absent,
already there, not served) are values, not errors. Text of a server never enters `str(error)`: a
validation message quotes the user's values, and what is logged must not. This module imports
nothing and knows no wire format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from typing_extensions import override


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of a server's `details.causes`: the field it names and why, without the value."""

    reason: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What a server said when it refused; `message` is foreign text, cut, and meant for the
    object's owner only.
    """

    status: int
    reason: str = ""
    message: str = ""
    kind: str = (
        ""  # details.kind: a create answered 404 with "namespaces" means the namespace is gone
    )
    name: str = ""  # details.name: tells "no such object" from "no such kind"
    causes: tuple[Cause, ...] = ()

    def has_cause(self, reason: str) -> bool:
        return any(cause.reason == reason for cause in self.causes)


class ReconcileError(Exception):
    """Anything that ends a step of a pass; `reason` is one word to search for, `message` one
    sentence.
    """

    def __init__(
        self, reason: str, message: str, *, answer: ServerAnswer | None = None, plane: str = ""
    ) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message
        self.answer = answer
        self.plane = plane  # the plane that failed, where one did: its state decides about retries

    @override
    def __str__(self) -> str:
        return self.message

    @property
    def status(self) -> int | None:
        """HTTP status of the answer behind this error, if a server answered at all."""
        return self.answer.status if self.answer else None


class TransientError(ReconcileError):
    """Worth trying again, later and with jitter."""


class ConflictError(TransientError):
    """Somebody wrote first: read again, derive again, at once."""


class ThrottledError(TransientError):
    """The plane asked for a pause; nothing was carried out."""

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
    """The plane holds, or answers, more than is taken of one plane; others are not affected."""


class UnavailableError(TransientError):
    """The plane or service is away, or broken on its side."""


class BreakerOpenError(UnavailableError):
    """Not sent: the plane did not answer others, and the breaker keeps the way shut."""


class OutcomeUnknownError(UnavailableError):
    """A mutating request was sent and no answer came: it may have been carried out, so read before
    sending again.
    """


class RejectedError(ReconcileError):
    """The plane said no, and will say no again until something changes."""


class InvalidSpecError(RejectedError):
    """The object is at fault; whoever wrote it has to act."""


class ForbiddenError(RejectedError):
    """Our credential is at fault; whoever runs the platform has to act."""


class PlaneGoneError(ReconcileError):
    """The plane is not engaged (any more); its keys are dropped, not retried."""


class InvariantError(ReconcileError):
    """Something that cannot be: our bug."""

    def __init__(self, message: str) -> None:
        super().__init__("InvariantViolated", message)


# Worst first. Only classes with a behaviour of their own; a subclass that is not listed counts as
# its parent.
SEVERITY: Final[tuple[type[ReconcileError], ...]] = (
    InvariantError,
    ForbiddenError,
    RejectedError,
    UnavailableError,
    ThrottledError,
    ConflictError,
    TransientError,
    PlaneGoneError,
    ReconcileError,
)


def iter_leaves(error: BaseException) -> Iterator[BaseException]:
    """The single errors inside nested exception groups, in order; a plain error is its own leaf."""
    inside = inner_errors(error)
    if not inside:
        yield error
    for inner in inside:
        yield from iter_leaves(inner)


def inner_errors(error: BaseException) -> tuple[BaseException, ...]:
    """The members of a group; a plain error has none, and no group is empty."""
    match error:
        case BaseExceptionGroup(exceptions=exceptions):
            return tuple(exceptions)
        case _:
            return ()


def find_worst(errors: Iterable[ReconcileError]) -> ReconcileError | None:
    """The error whose class decides for a whole pass; among equals the first."""
    return min(errors, key=severity_of, default=None)


def severity_of(error: ReconcileError) -> int:
    """Place of an error's class in `SEVERITY`, 0 being the worst."""
    return min(SEVERITY.index(known) for known in type(error).__mro__ if known in SEVERITY)
