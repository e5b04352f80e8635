"""Where time and identity come from: passed in, so that a run is a function of its seed.

The server never reads a wall clock or a random device by itself. Waiting is done with timers of the
running event loop, whose time a virtual clock advances; this module must not sleep.
"""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import Final, Protocol

# Vowels and look-alikes are left out, as in a real server, so that no suffix spells a word.
SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5


class Clock(Protocol):
    """Tells the time of the world the server lives in."""

    def now(self) -> datetime: ...


class Identities(Protocol):
    """Makes what must be unique: UIDs, and the end of a generated name."""

    def uid(self) -> str: ...

    def suffix(self) -> str: ...


class SystemClock:
    """The time of this machine, for a server that runs as a process."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class SeededIdentities:
    """Identities from one seeded source: the same seed gives the same ones in the same order."""

    def __init__(self, seed: int | random.Random) -> None:
        self._random = seed if isinstance(seed, random.Random) else random.Random(seed)  # noqa: S311 (nothing secret)

    def uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self._random.choice(SUFFIX_LETTERS) for _ in range(SUFFIX_LENGTH))


def render_time(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, the only form of a time in object metadata."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def render_micro_time(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, as leases and events carry it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
