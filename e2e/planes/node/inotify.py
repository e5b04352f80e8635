"""How many files can be watched for changes: the kernel lets a user have 128 watchers by default.

An API server has six, a kubelet several; where they run out, kubelets end with `too many open
files`, a minute after everything looked well.
"""

from __future__ import annotations

import ctypes
import os


def count_free(wanted: int) -> int:
    """So many of those wanted can be had now; they are given back at once."""
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
