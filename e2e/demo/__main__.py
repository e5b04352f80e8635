"""`./dev demo`: the demo on embedded planes; `--help` lists the options.

Only the start is here, so that an interrupt during the imports prints no traceback.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

INTERRUPTED = 130  # the shell's exit code for a program ended by Ctrl-C


def _leave(number: int, frame: FrameType | None) -> None:
    """Nothing was started yet, so there is nothing to stop."""
    del number, frame
    sys.exit(INTERRUPTED)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, _leave)
    from e2e.demo.command import main

    sys.exit(main())
