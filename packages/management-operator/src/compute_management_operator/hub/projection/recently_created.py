"""Keys of hub Instances with a projection that this process created lately. No I/O.

Without it, projections of a deployment that was deleted, which the cache does not show yet, are
created again each time the garbage collector deletes them. A projection that is created again
requires a live read of its deployment; the first time requires none.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from compute_operator_kit.core.keys import ObjectKey

MOST: Final = 4096  # keys; the garbage collector deletes within seconds


class RecentlyCreated:
    """Keys of hub Instances, the oldest first."""

    def __init__(self) -> None:
        self._keys: OrderedDict[ObjectKey, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._keys

    def add(self, key: ObjectKey) -> None:
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._keys) > MOST:
            self._keys.popitem(last=False)

    def forget(self, key: ObjectKey) -> None:
        self._keys.pop(key, None)
