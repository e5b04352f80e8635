"""Starts a program that cannot outlive whoever started it.

Run as a script of its own between parent and program: it asks the kernel to be killed when the
parent dies (also by kill -9), makes sure that this has not happened yet, and becomes the program. A
script instead of code between fork and exec, because that is not safe in a process with threads.

The kernel watches the thread that started the program, so start programs from a thread that lives
as long as they should. Only Linux offers this; elsewhere the program is started plainly and an
orderly end is all there is. It must import nothing of ours: it runs isolated, to start in 20 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
REFUSED: Final = 125


def tethered(command: Sequence[str]) -> list[str]:
    """The command line that runs `command` tied to this process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(arguments: Sequence[str]) -> None:
    parent, *command = arguments
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            sys.stderr.write(f"tying to the parent: {os.strerror(ctypes.get_errno())}\n")
            os._exit(REFUSED)
        # The parent may have died before we asked; then nobody would ever be told.
        if os.getppid() != int(parent):
            os._exit(REFUSED)
    try:
        os.execv(command[0], command)  # noqa: S606 becoming the program is the purpose
    except OSError as cause:
        sys.stderr.write(f"starting {command[0]}: {cause.strerror}\n")
        os._exit(REFUSED)


if __name__ == "__main__":
    main(sys.argv[1:])
