"""Holds back removals that rest on absence alone and would hit too many at once (faults.md D9).

An object whose source is not there any more is removed. A plane that was restored empty, or a
list that lost its contents, looks exactly the same for every object at once. So a finding of at
least 10 objects that is more than a fifth of what was looked at must be made twice, a minute apart;
what both findings name is removed then. Small findings pass. Who lists is the caller; here is only
the judgement. Time is an argument.

```
found 3 of 200     go on
found 40 of 50     refuse, tell, look again in 60 s ─► the same 40: go on
                                                    └► now only 2: go on with those
```
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from compute_operator_kit.clock import ZERO
from compute_operator_kit.keys import PlaneName

FEWEST: Final = 10
LARGEST_SHARE: Final = 0.2
APART: Final = timedelta(seconds=60)
# A small finding serves the keys it names for a moment, so that ten removals are not ten lists.
FRESH_FOR: Final = timedelta(seconds=5)
SOON: Final = timedelta(seconds=1)

Named: TypeAlias = Hashable


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, once."""

    at: timedelta
    missing: frozenset[Named]
    total: int
    allowed: frozenset[Named]

    @property
    def is_large(self) -> bool:
        return len(self.missing) >= FEWEST and len(self.missing) > LARGEST_SHARE * self.total


@dataclass(frozen=True, slots=True)
class Allowed:
    """The removal may go on."""


@dataclass(frozen=True, slots=True)
class Held:
    """Not now; `is_news` once per finding."""

    missing: int
    total: int
    wait: timedelta
    is_news: bool = False


Ruling: TypeAlias = Allowed | Held


class MassDeleteGuard:
    """Findings by plane, or by whatever is looked at as one."""

    def __init__(self) -> None:
        self._findings: dict[PlaneName, Finding] = {}
        self._told: set[PlaneName] = set()

    def needs_look(self, plane: PlaneName, name: Named, now: timedelta) -> bool:
        """Whether somebody has to list again before this object can be judged."""
        found = self._findings.get(plane)
        if found is None:
            return True
        if found.is_large:
            return now - found.at >= APART
        return now - found.at >= FRESH_FOR or name not in found.missing

    def record(
        self, plane: PlaneName, missing: frozenset[Named], total: int, now: timedelta
    ) -> None:
        """Somebody has listed."""
        before = self._findings.get(plane)
        found = Finding(now, missing, total, missing)
        if found.is_large:
            if before is not None and before.is_large and now - before.at < APART:
                return  # two who looked side by side made one finding, not two
            # One that shares nothing with the last is another loss, however long ago that was.
            large = before.missing if before is not None and before.is_large else frozenset[Named]()
            allowed = missing & large
            found = Finding(now, missing, total, allowed)
            if not allowed:
                self._told.discard(plane)
        self._findings[plane] = found

    def judge(self, plane: PlaneName, name: Named, now: timedelta) -> Ruling:
        """By the last finding; without one nothing is removed."""
        found = self._findings.get(plane)
        if found is None:
            return Held(0, 0, SOON)
        if name in found.allowed:
            return Allowed()
        if not found.is_large:
            return Held(len(found.missing), found.total, SOON)
        is_news = plane not in self._told
        self._told.add(plane)
        wait = max(ZERO, found.at + APART - now)
        return Held(len(found.missing), found.total, wait, is_news)

    def forget(self, is_gone: Callable[[PlaneName], bool]) -> None:
        for plane in [plane for plane in self._findings if is_gone(plane)]:
            del self._findings[plane]
            self._told.discard(plane)
