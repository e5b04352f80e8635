"""`python -m e2e.backends.kind prepare`: one line and exit code 3 where kind cannot run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from e2e.backends.kind.commands import MachineFacts, check_machine
from e2e.harness.errors import PlanesError

IMPOSSIBLE: Final = 3


def main(
    arguments: Sequence[str] | None = None, detect: Callable[[], MachineFacts] = MachineFacts.detect
) -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.backends.kind", description=__doc__)
    parser.add_argument("command", choices=("prepare",))
    parser.parse_args(arguments)
    try:
        check_machine(detect())
    except PlanesError as failure:
        sys.stdout.write(f"kind: not run: {failure}\n")
        return IMPOSSIBLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
