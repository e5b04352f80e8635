"""When to send again, and how long to wait before; pure.

The numbers of docs/spec/quota.md A5. Chance is an argument: a function that gives a number from 0
to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, TypeAlias

Chance: TypeAlias = Callable[[], float]

OPERATION_LIMIT: Final = timedelta(seconds=10)
CONNECT_LIMIT: Final = timedelta(seconds=2)
READ_LIMIT: Final = timedelta(seconds=5)
TRIES: Final = 3
FIRST_DELAY: Final = timedelta(seconds=0.2)
# A 429 without Retry-After, and the least a server can make us wait: API servers that start ask for
# 1 s.
DEFAULT_PAUSE: Final = timedelta(seconds=1)
SHORTEST_PAUSE: Final = FIRST_DELAY
# The most a server can make us wait: a forged or mistaken header must not stop a project for days.
LONGEST_PAUSE: Final = timedelta(minutes=5)
# Reopening watches and listing for them: as the circuit's probes, which bound how soon a returned
# plane is noticed.
REOPEN_FIRST: Final = timedelta(seconds=1)
REOPEN_CAP: Final = timedelta(seconds=30)
REOPEN_JITTER: Final = 0.2


def retry_delay(failed_tries: int, chance: Chance) -> timedelta:
    """The wait after so many failed tries: full jitter under a doubling ceiling."""
    return FIRST_DELAY * (1 << (failed_tries - 1)) * chance()


def spread_delay(step: int, chance: Chance) -> timedelta:
    """The wait number `step`, from 0: 1 s doubling to 30 s, ±20 %."""
    ceiling = min(REOPEN_FIRST * (1 << min(step, 10)), REOPEN_CAP)
    return ceiling * (1 + REOPEN_JITTER * (2 * chance() - 1))


def is_server_failure(status: int) -> bool:
    """Whether the answer says that the server could not, rather than would not."""
    return status >= 500


def parse_retry_after(value: str | None, now: datetime) -> timedelta | None:
    """The pause a `Retry-After` header asks for, in seconds or until a date, at most
    `LONGEST_PAUSE`; None where the header is not usable.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        # More digits than a year has seconds: the number is not read, it is too long in any case.
        is_long = len(text) > 8
        return LONGEST_PAUSE if is_long else min(timedelta(seconds=int(text)), LONGEST_PAUSE)
    try:
        until = parsedate_to_datetime(text)
        if until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        return min(max(until - now, timedelta(0)), LONGEST_PAUSE)
    except (ValueError, OverflowError):
        return None
