"""Names under which a Karmada binding may be left over from a deleted copy. No I/O.

A binding outlives its copy for a moment, and a copy that is recreated under the name waits for its
end (management.md 4, step 8). A name without a recent copy has no binding, so that the read of one
is saved for almost every copy:

```
a watch showed the deletion of a copy of the name              may be, for ten minutes
this process created the hub namespace, and watched since      none: it was empty
the watch is ten minutes old                                   none: a binding that is stuck for
                                                               longer does not end within a minute
else, after a start or a new list                              may be: earlier deletions are unknown
```
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

from compute_management_operator.hub.delays import BINDING_FORGOTTEN_AFTER
from compute_operator_kit.cache.store import Listing
from compute_operator_kit.core.clock import Clock

K = TypeVar("K")


class LeftoverBindings:
    """Copies that were deleted and hub namespaces that were created lately; lost by a restart."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._gone: dict[tuple[str, str], timedelta] = {}  # copies, the first deleted first
        self._made: dict[str, timedelta] = {}  # hub namespaces, the oldest first

    def __len__(self) -> int:
        return len(self._gone) + len(self._made)

    def note_gone(self, hub_name: str, name: str) -> None:
        """A copy was deleted. Followers, which never read this, must drop old entries here."""
        _drop_older(self._gone, self._clock.monotonic() - BINDING_FORGOTTEN_AFTER)
        self._gone.pop((hub_name, name), None)
        self._gone[hub_name, name] = self._clock.monotonic()

    def note_made(self, hub_name: str) -> None:
        """This process has created a hub namespace."""
        self._made.pop(hub_name, None)
        self._made[hub_name] = self._clock.monotonic()

    def may_be(self, hub_name: str, name: str, listing: Listing | None) -> bool:
        """`listing`: the last complete list of copies; since then no deletion has been missed."""
        oldest = self._clock.monotonic() - BINDING_FORGOTTEN_AFTER
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
