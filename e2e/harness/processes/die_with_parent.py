"""Starts a program that the kernel kills when its parent dies.

It runs as a script between parent and program: it sets PR_SET_PDEATHSIG (which also covers kill
-9), checks that the parent is still alive, and replaces itself by the program. Code between fork
and exec would not be safe in a process with threads.

The kernel tracks the thread that started the program, so that thread must live as long. Only Linux
has this; elsewhere the program is started directly and ends only by an orderly stop. The script
runs isolated, to start in 20 ms, and imports the standard library only.
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


def with_parent_death_signal(command: Sequence[str]) -> list[str]:
    """The command line that runs `command` under this script."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(arguments: Sequence[str]) -> None:
    parent, *command = arguments
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            sys.stderr.write(f"tying to the parent: {os.strerror(ctypes.get_errno())}\n")
            os._exit(REFUSED)
        # The parent may have died before the call; then no signal would come.
        if os.getppid() != int(parent):
            os._exit(REFUSED)
    try:
        os.execv(command[0], command)  # noqa: S606 becoming the program is the purpose
    except OSError as cause:
        sys.stderr.write(f"starting {command[0]}: {cause.strerror}\n")
        os._exit(REFUSED)


if __name__ == "__main__":
    main(sys.argv[1:])
