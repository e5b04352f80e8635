"""Counts available inotify instances, of which the kernel allows a user 128 by default.

An API server needs six and a kubelet several; without them kubelets end with `too many open files`
a minute after a good start.
"""

from __future__ import annotations

import ctypes
import os


def count_free(wanted: int) -> int:
    """How many of the wanted instances are available now; they are released at once."""
    kernel = ctypes.CDLL(None, use_errno=True)
    begin = kernel.inotify_init1
    begin.restype = ctypes.c_int
    opened: list[int] = []
    try:
        for _ in range(wanted):
            watcher: int = begin(os.O_CLOEXEC)
            if watcher < 0:
                break
            opened.append(watcher)
        return len(opened)
    finally:
        for watcher in opened:
            os.close(watcher)
