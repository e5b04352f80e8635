"""Retry limits, delays and the `Retry-After` header; pure.

The numbers of docs/spec/quota.md A5. Randomness is an argument, `chance`: a function that returns a
number from 0 to 1.
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
# The pause of a 429 without Retry-After (a starting API server asks for 1 s), and the shortest one
# taken from a header.
DEFAULT_PAUSE: Final = timedelta(seconds=1)
SHORTEST_PAUSE: Final = FIRST_DELAY
# The longest pause: a forged or mistaken header must not stop a project for days.
LONGEST_PAUSE: Final = timedelta(minutes=5)
# Delays before a watch is reopened or listed again; as those of the circuit's probes, which limit
# how soon a plane is used again.
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
    """Whether the server failed to process the request; a 4xx is a refusal."""
    return status >= 500


def parse_retry_after(value: str | None, now: datetime) -> timedelta | None:
    """The pause a `Retry-After` header asks for, in seconds or until a date, at most
    `LONGEST_PAUSE`; None where the header is not usable.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        # More digits than a year has seconds: not parsed, it is too long in any case.
        is_long = len(text) > 8
        return LONGEST_PAUSE if is_long else min(timedelta(seconds=int(text)), LONGEST_PAUSE)
    try:
        until = parsedate_to_datetime(text)
        if until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        return min(max(until - now, timedelta(0)), LONGEST_PAUSE)
    except (ValueError, OverflowError):
        return None
