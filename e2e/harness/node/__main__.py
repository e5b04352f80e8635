"""`python -m e2e.harness.node prepare` and `sweep`.

`prepare` prepares the machine for nodes, or prints one line and exits with 3 if that is impossible;
`sweep` removes the leftovers of crashed runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from e2e.harness.errors import PlanesError
from e2e.harness.node import leftovers, reserving
from e2e.harness.node.machine import Machine
from e2e.harness.node.preparing import prepare

IMPOSSIBLE: Final = 3


def main(
    arguments: Sequence[str] | None = None, detect: Callable[[], Machine] = Machine.detect
) -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.harness.node", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare", help="install what nodes need, and try it")
    commands.add_parser("sweep", help="remove what crashed runs left")
    try:
        match parser.parse_args(arguments).command:
            case "prepare":
                prepare(detect)
            case _:
                for held in reserving.reserve(0):
                    held.release()
                for left in leftovers.find_all():
                    sys.stdout.write(f"in use: {left}\n")
    except PlanesError as failure:
        sys.stdout.write(f"in-cluster: not run: {failure}\n")
        return IMPOSSIBLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
