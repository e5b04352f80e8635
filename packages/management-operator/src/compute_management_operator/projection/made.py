"""Remembers of which hub Instances a projection was made lately. No I/O.

Without it, a deployment that is gone, and not yet so in the cache, has its projections made again
as often as the garbage collector takes them. Made once more, a projection costs a read of its
deployment; the first time it costs none.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from compute_operator_kit.keys import ObjectKey

MOST: Final = 4096  # keys; what the garbage collector takes comes back within seconds


class MadeLately:
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
