"""Packs what rests in the caches of all planes, a little at a time so that nothing waits for it.

An operator calls it every few seconds, on every replica. What became free in between other blocks
is then given back to the system. Where there is more to do than workers can, it gives way to them
for a while: what is packed then is soon unpacked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Final

from compute_operator_kit.cache import Store
from compute_operator_kit.clock import Clock
from compute_operator_kit.heap import trim
from compute_operator_kit.keys import Role
from compute_operator_kit.planes import Planes

# Less than a millisecond at 12 µs each.
AT_ONCE: Final = 32
# Trimming walks over the whole heap, a few milliseconds: not for a handful of objects.
WORTH_TRIMMING: Final = 32
# Not longer: what a rush leaves in memory must not wait for its end.
GIVES_WAY_FOR: Final = timedelta(seconds=30)


class Packing:
    """For all planes of one process."""

    def __init__(
        self, stores: Callable[[], Iterable[Store]], clock: Clock, is_pressed: Callable[[], bool]
    ) -> None:
        self._stores = stores
        self._clock = clock
        self._is_pressed = is_pressed
        self._last = clock.monotonic()

    async def go_on(self) -> None:
        """Called every few seconds."""
        now = self._clock.monotonic()
        if self._is_pressed() and now - self._last < GIVES_WAY_FOR:
            return
        self._last = now
        await pack_resting(self._stores())


def stores_of(planes: Planes) -> Iterator[Store]:
    """All stores of all planes that are engaged; planes may come and go meanwhile."""
    for role in Role:
        for engaged in tuple(planes.engaged(role)):
            yield from engaged.stores.values()


async def pack_resting(stores: Iterable[Store]) -> int:
    """Packs what has not changed since the last call; how many objects that were."""
    packed = 0
    for store in stores:
        for _ in store.pack_resting():
            packed += 1
            if packed % AT_ONCE == 0:
                await asyncio.sleep(0)
    if packed >= WORTH_TRIMMING:
        trim()
    return packed
