"""A cache of the last few decoded object versions.

One version is decoded by index functions, by the reconciles of its event, and by the comparisons
before and after a write, all within a moment and then mostly never again. The values are shared by
all readers, and none may change them. Admission reads in a thread of its own: each operation here
is atomic.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeAlias, TypeVar

from compute_operator_kit.core.compression import is_packed
from compute_operator_kit.core.keys import Uid

T = TypeVar("T")

Version: TypeAlias = tuple[Uid, str]  # of an object: its UID and its resourceVersion

# Enough for a reconcile to reuse what the one before it read 200 ms ago (`statusSettle`), at a
# hundred Workloads per second. Decoded, an object takes five times its bytes: together 3 MiB for
# objects of 3 KB, and at most 12 MiB.
MOST_SHARED: Final = 128
LARGEST_SHARED: Final = 16 * 1024
LARGEST_PACKED_SHARED: Final = LARGEST_SHARED // 8  # few objects compress to less than an eighth


class DecodeCache(Generic[T]):
    """Values by version, the oldest first, each with the bytes it was decoded from: comparing them
    takes a tenth of the time of hashing them.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: OrderedDict[Version, tuple[bytes, T]] = OrderedDict()

    def find(self, version: Version, kept: bytes) -> T | None:
        entry = self._values.get(version)
        return entry[1] if entry is not None and entry[0] == kept else None

    def put(self, version: Version, kept: bytes, value: T) -> T:
        """Stores and returns a value; large values, and values of lent bodies, are not stored."""
        if not kept or len(kept) > (LARGEST_PACKED_SHARED if is_packed(kept) else LARGEST_SHARED):
            return value
        if len(self._values) >= MOST_SHARED and version not in self._values:
            self._values.popitem(last=False)
        self._values[version] = (kept, value)
        return value
