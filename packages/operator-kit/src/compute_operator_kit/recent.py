"""What was made of the bytes of the last few versions of objects, for who looks at one again.

One version is looked at by index functions, by the passes it wakes, by the comparison before a
write and by the one after it, all within a moment; then mostly never again. What is kept is shared
by all of them and changed by none. Admission reads too, in a thread of its own: every step here is
a whole one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeAlias, TypeVar

from compute_operator_kit.keys import Uid
from compute_operator_kit.packing import is_packed

T = TypeVar("T")

Version: TypeAlias = tuple[Uid, str]  # of an object: its UID and its resourceVersion

# Enough for a pass to find what the one before it read, a fifth of a second ago (`statusSettle`),
# among a hundred Workloads a second. Decoded, an object takes five times its bytes: together 3 MiB
# where objects have 3 KB, and 12 MiB at the very most.
MOST_SHARED: Final = 128
LARGEST_SHARED: Final = 16 * 1024
LARGEST_PACKED_SHARED: Final = LARGEST_SHARED // 8  # few objects pack to less than an eighth


class Recent(Generic[T]):
    """By version, the oldest first, each beside the bytes it was made of: comparing these takes a
    tenth of the time of hashing them.
    """

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: OrderedDict[Version, tuple[bytes, T]] = OrderedDict()

    def find(self, version: Version, kept: bytes) -> T | None:
        found = self._made.get(version)
        return found[1] if found is not None and found[0] == kept else None

    def keep(self, version: Version, kept: bytes, made: T) -> T:
        """Gives back what was made; of what is large, or was lent, the next one makes it again."""
        if not kept or len(kept) > (LARGEST_PACKED_SHARED if is_packed(kept) else LARGEST_SHARED):
            return made
        if len(self._made) >= MOST_SHARED and version not in self._made:
            self._made.popitem(last=False)
        self._made[version] = (kept, made)
        return made
