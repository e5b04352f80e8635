"""Since when each key waits for each reason, as far as this process has observed. No I/O.

The reason of a `RequeueAfter` is a *situation* of its key. The next reconcile receives when the
situation began, so that a plan can record an event once, give up after a while, or wait fifteen
minutes from when an absence was first observed, not from the age of an object. A restart forgets
it, so it may delay a write or repeat an event and decides nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.intents.intents import Plan, RequeueAfter

NOTHING: Final[Mapping[str, datetime]] = MappingProxyType({})


class WaitTracker:
    """Situations of the keys of one controller."""

    def __init__(self) -> None:
        self._since: dict[ObjectKey, dict[str, datetime]] = {}

    def __len__(self) -> int:
        return len(self._since)

    def of(self, key: ObjectKey) -> Mapping[str, datetime]:
        """Every situation the key is in, with its beginning."""
        situations = self._since.get(key)
        return NOTHING if situations is None else MappingProxyType(situations)

    def note(self, key: ObjectKey, plans: Iterable[Plan], now: datetime) -> None:
        """A reconcile ended: its waits continue or begin, all other situations are over."""
        reasons = {
            intent.reason
            for plan in plans
            for intent in plan.intents
            if isinstance(intent, RequeueAfter)
        }
        before = self._since.get(key, {})
        if reasons:
            self._since[key] = {reason: before.get(reason, now) for reason in sorted(reasons)}
        else:
            self._since.pop(key, None)

    def end(self, key: ObjectKey) -> None:
        """All situations of the key are over, during an outage for instance."""
        self._since.pop(key, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        for key in [key for key in self._since if is_gone(key)]:
            del self._since[key]

    def count(self) -> Counter[str]:
        """How many keys are in each situation."""
        return Counter(reason for since in self._since.values() for reason in since)
