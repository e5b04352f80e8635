"""Since when a key has been in a situation, as far as this process has seen. No I/O.

A plan that waits says why (`Wait.reason`); that reason is a *situation*. The pass after it learns
since when it lasts, so that a plan can say something once, give up after a while, or be patient for
fifteen minutes from when an absence was first seen rather than from how old an object is. What is
remembered dies with the process, so it may delay an act or repeat an event and decide nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from compute_operator_kit.intents import Plan, Wait
from compute_operator_kit.keys import ObjectKey

NOTHING: Final[Mapping[str, datetime]] = MappingProxyType({})


class Episodes:
    """Situations of the keys of one controller."""

    def __init__(self) -> None:
        self._since: dict[ObjectKey, dict[str, datetime]] = {}

    def __len__(self) -> int:
        return len(self._since)

    def of(self, key: ObjectKey) -> Mapping[str, datetime]:
        """Every situation the key is in, with its beginning."""
        found = self._since.get(key)
        return NOTHING if found is None else MappingProxyType(found)

    def note(self, key: ObjectKey, plans: Iterable[Plan], now: datetime) -> None:
        """A pass ended: what it waits for goes on or begins, everything else is over."""
        reasons = {
            intent.reason for plan in plans for intent in plan.intents if isinstance(intent, Wait)
        }
        before = self._since.get(key, {})
        if reasons:
            self._since[key] = {reason: before.get(reason, now) for reason in sorted(reasons)}
        else:
            self._since.pop(key, None)

    def end(self, key: ObjectKey) -> None:
        """Nothing is known any more, an outage for instance: what lasted begins anew."""
        self._since.pop(key, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        for key in [key for key in self._since if is_gone(key)]:
            del self._since[key]

    def count(self) -> Counter[str]:
        """How many keys are in each situation."""
        return Counter(reason for since in self._since.values() for reason in since)
