"""`./dev demo`: the whole chain on embedded planes, in a minute; `--help` tells the options.

Only the beginning is here: whoever interrupts while modules are still being read sees no trace.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

INTERRUPTED = 130  # what a shell calls a program ended by Ctrl-C


def _leave(number: int, frame: FrameType | None) -> None:
    """Nothing was begun yet, so nothing is to be taken down."""
    del number, frame
    sys.exit(INTERRUPTED)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, _leave)
    from e2e.demo.command import main

    sys.exit(main())
