"""Memory settings of the process: Python's garbage collector and glibc's allocator.

By default the collector scans live objects during reconciles, and the allocator keeps freed blocks
instead of returning them to the system. Without glibc, its settings are skipped.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Final

_M_MMAP_THRESHOLD: Final = -3  # malloc.h
_M_ARENA_MAX: Final = -8
# Thresholds of the three generations. A reconcile allocates some thousand objects, nearly all of
# which end with it: with Python's default of 700, the collector scans them several times in the
# middle of a reconcile and finds no garbage.
_COLLECT_AFTER: Final = (50_000, 20, 10)


def return_large_blocks() -> None:
    """Makes glibc return blocks of 128 KiB and more to the system when they are freed.

    By default it keeps them for allocations of the same size, here the 256 KiB buffers of
    connections. An idle watch touches only a few pages of a buffer that is fresh from the system.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    set_option(_M_MMAP_THRESHOLD, 128 * 1024)
    # A heap per thread helps only threads that run at the same time.
    set_option(_M_ARENA_MAX, 1)


def collect_rarely() -> None:
    """Excludes imported objects from collection and raises the thresholds; called at the start.

    During the first lists of many planes, most objects are allocated and none are garbage.
    """
    gc.collect()  # or garbage of the imports is kept forever
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def freeze_heap() -> None:
    """Excludes all present objects from collection; called after the first sync, when they are
    caches that stay.
    """
    gc.collect()
    gc.freeze()


def trim() -> None:
    """Makes glibc return free memory between other blocks to the system, which it otherwise keeps.
    It walks the whole heap, a few milliseconds.
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return
    malloc_trim(0)
