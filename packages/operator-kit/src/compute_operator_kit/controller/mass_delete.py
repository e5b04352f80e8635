"""The mass-delete guard: it holds back many deletions inferred from absence (faults.md D9).

An object without a source is deleted. After a plane was restored empty, or a list lost its
contents, every object looks like that at once. So a count of at least 10 missing objects and more
than a fifth of all must be taken twice, a minute apart; objects that are missing in both are
deleted then. Smaller counts pass. The caller lists; this module only decides. Pure; time is an
argument.

```
3 of 200 missing    allowed
40 of 50 missing    held and reported; listed again after 60 s ─► the same 40: allowed
                                                               └► only 2: those are allowed
```
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.keys import PlaneName

FEWEST: Final = 10
LARGEST_SHARE: Final = 0.2
APART: Final = timedelta(seconds=60)
# A small count serves the keys it names for a moment, so that ten deletions are not ten lists.
FRESH_FOR: Final = timedelta(seconds=5)
SOON: Final = timedelta(seconds=1)

Named: TypeAlias = Hashable


@dataclass(frozen=True, slots=True)
class AbsenceCount:
    """Missing objects in one complete list."""

    at: timedelta
    missing: frozenset[Named]
    total: int
    allowed: frozenset[Named]

    @property
    def is_large(self) -> bool:
        return len(self.missing) >= FEWEST and len(self.missing) > LARGEST_SHARE * self.total


@dataclass(frozen=True, slots=True)
class RemovalAllowed:
    """The deletion may be carried out."""


@dataclass(frozen=True, slots=True)
class RemovalHeld:
    """The deletion is refused for now; `is_news` is true once per large count."""

    missing: int
    total: int
    wait: timedelta
    is_news: bool = False


Ruling: TypeAlias = RemovalAllowed | RemovalHeld


class MassDeleteGuard:
    """The last count of each plane."""

    def __init__(self) -> None:
        self._counts: dict[PlaneName, AbsenceCount] = {}
        self._reported: set[PlaneName] = set()

    def needs_look(self, plane: PlaneName, name: Named, now: timedelta) -> bool:
        """Whether the caller must list again before `judge` can decide about this object."""
        count = self._counts.get(plane)
        if count is None:
            return True
        if count.is_large:
            return now - count.at >= APART
        return now - count.at >= FRESH_FOR or name not in count.missing

    def record(
        self, plane: PlaneName, missing: frozenset[Named], total: int, now: timedelta
    ) -> None:
        """Records a complete list."""
        before = self._counts.get(plane)
        count = AbsenceCount(now, missing, total, missing)
        if count.is_large:
            if before is not None and before.is_large and now - before.at < APART:
                return  # two lists at the same time are one count, not a confirmation
            # A count without a common object is a new loss, however old the last one is.
            large = before.missing if before is not None and before.is_large else frozenset[Named]()
            allowed = missing & large
            count = AbsenceCount(now, missing, total, allowed)
            if not allowed:
                self._reported.discard(plane)
        self._counts[plane] = count

    def judge(self, plane: PlaneName, name: Named, now: timedelta) -> Ruling:
        """Decides by the last count; without one nothing is deleted."""
        count = self._counts.get(plane)
        if count is None:
            return RemovalHeld(0, 0, SOON)
        if name in count.allowed:
            return RemovalAllowed()
        if not count.is_large:
            return RemovalHeld(len(count.missing), count.total, SOON)
        is_news = plane not in self._reported
        self._reported.add(plane)
        wait = max(ZERO, count.at + APART - now)
        return RemovalHeld(len(count.missing), count.total, wait, is_news)

    def forget(self, is_gone: Callable[[PlaneName], bool]) -> None:
        for plane in [plane for plane in self._counts if is_gone(plane)]:
            del self._counts[plane]
            self._reported.discard(plane)
