"""The command line of `compute-cell-operator`.

`decommission` is a command of its own: it needs no configuration file, no Lease and no cell.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

from compute_cell_operator.decommission import command as decommission
from compute_cell_operator.planes import CELL
from compute_cell_operator.process import run
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.wiring import COMPONENT
from compute_operator_kit.config.loader import Verb
from compute_operator_kit.core.system_clock import SystemClock
from compute_operator_kit.process.command_line import Program, run_program
from compute_operator_kit.process.lifecycle import ExitCode, Lifecycle, run_process

DISTRIBUTION: Final = "datum-compute-cell-operator"
DECOMMISSION: Final = Verb(
    decommission.VERB,
    "remove what a cell that never returns left on the hub and in the projects",
    decommission.add_arguments,
)
PROGRAM: Final = Program(COMPONENT, DISTRIBUTION, CELL, CellSettings, run, verbs=(DECOMMISSION,))


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Runs the operator, checks its configuration, or decommissions a cell; gives the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] == decommission.VERB:
        return _decommission(given[1:])
    return run_program(PROGRAM, given, environ)


def _decommission(arguments: Sequence[str]) -> int:
    command = decommission.parse_command(COMPONENT, arguments)
    outcome = ExitCode.FATAL

    async def execute(_: Lifecycle) -> None:
        nonlocal outcome
        agent = f"{COMPONENT}/{version(DISTRIBUTION)}"
        outcome = await decommission.run_command(command, agent, SystemClock(), print)

    ended = run_process(execute)
    return outcome if ended is ExitCode.CLEAN else ended


if __name__ == "__main__":
    sys.exit(main())
