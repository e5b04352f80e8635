"""`python -m e2e.browser prepare`: a browser, or one line and exit code 3 where none can be had."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from e2e.browser.chromium import NoBrowserError, find_or_install

IMPOSSIBLE: Final = 3


def main(arguments: Sequence[str] | None = None, find: Callable[[], str] = find_or_install) -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.browser", description=__doc__)
    parser.add_argument("command", choices=("prepare",))
    parser.parse_args(arguments)
    try:
        sys.stdout.write(f"{find()}\n")
    except NoBrowserError as failure:
        sys.stdout.write(f"browser: not run: {failure}\n")
        return IMPOSSIBLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
