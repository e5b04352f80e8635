"""The command line of `compute-management-operator`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from compute_management_operator.planes import HOME
from compute_management_operator.process import run
from compute_management_operator.settings import ManagementSettings
from compute_management_operator.wiring import COMPONENT
from compute_operator_kit.process.command_line import Program, run_program

DISTRIBUTION: Final = "datum-compute-management-operator"
PROGRAM: Final = Program(COMPONENT, DISTRIBUTION, HOME, ManagementSettings, run)


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Runs the operator, or checks its configuration; gives the exit code."""
    return run_program(PROGRAM, arguments, environ)


if __name__ == "__main__":
    sys.exit(main())
