"""What a process asks of those who manage its memory: Python's collector and the C library.

Elsewhere than on glibc there is nothing to ask of the latter.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Final

_M_MMAP_THRESHOLD: Final = -3  # malloc.h
_M_ARENA_MAX: Final = -8
# Young objects, then how many rounds of these before older ones are looked at too. A pass makes
# some thousand objects, nearly all of which end with it: with Python's 700 the collector looks at
# them several times in the middle of a pass, and finds nothing.
_COLLECT_AFTER: Final = (50_000, 20, 10)


def return_large_blocks() -> None:
    """Has the C library give blocks of 128 KiB and more back to the system as they are freed.

    By default it begins to keep them once one was freed, for what is as large: here the buffers of
    connections, 256 KiB each, of which an idle watch touches a few pages as long as they come fresh
    from the system.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    set_option(_M_MMAP_THRESHOLD, 128 * 1024)
    # A heap per thread helps threads that run at once; here one runs at a time.
    set_option(_M_ARENA_MAX, 1)


def collect_rarely() -> None:
    """From the start: what was imported stays, and what comes and goes is looked at less often.

    The first lists of many planes are when most objects are made and none are garbage.
    """
    gc.collect()  # what imports left behind must not be kept for good
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def freeze_heap() -> None:
    """After the first sync: what is in memory now stays, so the collector need not look at it
    again.
    """
    gc.collect()
    gc.freeze()


def trim() -> None:
    """Has the C library give back what is free between other blocks; it keeps it otherwise, for
    something as large that never follows. It walks over the whole heap, a few milliseconds.
    """
    try:
        give_back = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return
    give_back(0)
