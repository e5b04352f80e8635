"""`compute-cell-operator`: the command line, and nothing that happens after it.

`decommission` is a command of its own: it needs no configuration file, no Lease and no cell.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

from compute_cell_operator.decommission import command as decommission
from compute_cell_operator.serving import serve
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.wiring import COMPONENT
from compute_operator_kit.configuration import (
    CHECK_CONFIG,
    ConfigurationError,
    build_parser,
    load_settings,
    read_command,
)
from compute_operator_kit.process import (
    ExitCode,
    Lifecycle,
    report_refusal,
    report_warnings,
    run_process,
)
from compute_operator_kit.system_clock import SystemClock

DISTRIBUTION: Final = "datum-compute-cell-operator"


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Runs the operator, or checks its configuration; gives the exit code."""
    found = os.environ if environ is None else environ
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] == decommission.VERB:
        return _decommission(given[1:])
    parsed = build_parser(COMPONENT, version(DISTRIBUTION)).parse_args(given)
    command = read_command(parsed, found)
    try:
        settings = load_settings(CellSettings, command)
    except ConfigurationError as refused:
        report_refusal(refused)
        return ExitCode.REFUSED
    if command.verb == CHECK_CONFIG:
        report_warnings(settings)
        return ExitCode.CLEAN

    async def run(lifecycle: Lifecycle) -> None:
        await serve(settings, found, version(DISTRIBUTION), lifecycle)

    return run_process(run)


def _decommission(arguments: Sequence[str]) -> int:
    command = decommission.parse_command(COMPONENT, arguments)
    outcome = ExitCode.FATAL

    async def run(_: Lifecycle) -> None:
        nonlocal outcome
        agent = f"{COMPONENT}/{version(DISTRIBUTION)}"
        outcome = await decommission.run_command(command, agent, SystemClock(), print)

    ended = run_process(run)
    return outcome if ended is ExitCode.CLEAN else ended


if __name__ == "__main__":
    sys.exit(main())
