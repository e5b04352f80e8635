"""Where a binding of Karmada's may be left over from a copy that went. No I/O.

A binding outlives its copy by a moment, and a copy that is made anew under the name waits for that
(management.md 4, step 8). A name that no copy has had lately has no binding either, so nobody asks
for one:

```
a copy of the name went, and we saw it                         may be, for ten minutes
we made the hub namespace, and have watched ever since         none: it was empty
we have watched for ten minutes                                none: a binding that is stuck for
                                                               longer does not go within a minute
else, after a start or a new list                              may be: what went before, nobody saw
```
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, TypeVar

from compute_operator_kit.cache import Listing
from compute_operator_kit.clock import Clock

K = TypeVar("K")

FORGOTTEN_AFTER: Final = timedelta(minutes=10)


class Leftovers:
    """What one process has seen of copies and of hub namespaces; all of it may be lost."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._gone: dict[tuple[str, str], timedelta] = {}  # copies, the longest gone first
        self._made: dict[str, timedelta] = {}  # hub namespaces, the oldest first

    def __len__(self) -> int:
        """What is remembered."""
        return len(self._gone) + len(self._made)

    def note_gone(self, hub_name: str, name: str) -> None:
        """A copy has left the hub; told on followers too, which never ask."""
        _drop_older(self._gone, self._clock.monotonic() - FORGOTTEN_AFTER)
        self._gone.pop((hub_name, name), None)
        self._gone[hub_name, name] = self._clock.monotonic()

    def note_made(self, hub_name: str) -> None:
        """We have made a hub namespace."""
        self._made.pop(hub_name, None)
        self._made[hub_name] = self._clock.monotonic()

    def may_be(self, hub_name: str, name: str, listing: Listing | None) -> bool:
        """`listing`: the last complete list of copies; since then no deletion has been missed."""
        oldest = self._clock.monotonic() - FORGOTTEN_AFTER
        _drop_older(self._gone, oldest)
        _drop_older(self._made, oldest)
        if listing is None or (hub_name, name) in self._gone:
            return True
        made_at = self._made.get(hub_name)
        return listing.at > (oldest if made_at is None else made_at)


def _drop_older(moments: dict[K, timedelta], oldest: timedelta) -> None:
    while moments:
        first = next(iter(moments))
        if moments[first] >= oldest:
            return
        del moments[first]
