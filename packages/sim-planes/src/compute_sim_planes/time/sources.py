"""Interfaces and implementations of clocks and identities.

The server never reads the wall clock or a random device itself, so that a run is a function of its
seed. Waits are timers of the event loop, which a virtual clock advances.
"""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import Final, Protocol

# Without vowels and look-alikes, as in a real server, so that no suffix spells a word.
SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5


class Clock(Protocol):
    """The current time."""

    def now(self) -> datetime: ...


class Identities(Protocol):
    """Unique values: UIDs and the suffix of a generated name."""

    def uid(self) -> str: ...

    def suffix(self) -> str: ...


class SystemClock:
    """The time of the host, for a server that runs as a process."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class SeededIdentities:
    """Identities from one seeded source: equal seeds give equal sequences."""

    def __init__(self, seed: int | random.Random) -> None:
        self._random = seed if isinstance(seed, random.Random) else random.Random(seed)  # noqa: S311 (nothing secret)

    def uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self._random.choice(SUFFIX_LETTERS) for _ in range(SUFFIX_LENGTH))


def render_time(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as in object metadata."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
