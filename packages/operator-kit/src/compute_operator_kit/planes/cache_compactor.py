"""The cache compactor: it compresses cached objects that have not changed for a while.

Run every few seconds on every replica, it yields to the event loop after a few objects, so that no
reconcile waits for it, and returns freed memory to the system. While all workers are busy it pauses
for a limited time: an object compressed then is soon decompressed again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Final

from compute_operator_kit.cache.store import Store
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import Role
from compute_operator_kit.core.memory import trim
from compute_operator_kit.planes.registry import Planes

# Between two yields: less than a millisecond at 12 µs each.
COMPRESSED_AT_ONCE: Final = 32
# Trimming walks the whole heap for a few milliseconds: not worth it for a few objects.
WORTH_TRIMMING: Final = 32
# Bounded, so that memory does not grow for as long as the workers stay busy.
LONGEST_PAUSE: Final = timedelta(seconds=30)


class CacheCompactor:
    """Compresses the caches of all planes of one process."""

    def __init__(
        self, stores: Callable[[], Iterable[Store]], clock: Clock, is_busy: Callable[[], bool]
    ) -> None:
        self._stores = stores
        self._clock = clock
        self._is_busy = is_busy
        self._last = clock.monotonic()

    async def run_once(self) -> None:
        """Compresses what has not changed since the last call; to be called every few seconds."""
        now = self._clock.monotonic()
        if self._is_busy() and now - self._last < LONGEST_PAUSE:
            return
        self._last = now
        await compact_resting(self._stores())


def stores_of(planes: Planes) -> Iterator[Store]:
    """All stores of all engaged planes; planes and kinds may be opened and closed meanwhile."""
    for role in Role:
        for engaged in tuple(planes.engaged(role)):
            yield from tuple(engaged.stores.values())


async def compact_resting(stores: Iterable[Store]) -> int:
    """Compresses objects that have not changed since the last call; returns their number."""
    compressed = 0
    for store in stores:
        for _ in store.pack_resting():
            compressed += 1
            if compressed % COMPRESSED_AT_ONCE == 0:
                await asyncio.sleep(0)
    if compressed >= WORTH_TRIMMING:
        trim()
    return compressed
