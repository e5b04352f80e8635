"""`compute-management-operator`: the command line, and nothing that happens after it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

from compute_management_operator.serving import serve
from compute_management_operator.settings import ManagementSettings
from compute_management_operator.wiring import COMPONENT
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

DISTRIBUTION: Final = "datum-compute-management-operator"


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Runs the operator, or checks its configuration; gives the exit code."""
    found = os.environ if environ is None else environ
    parsed = build_parser(COMPONENT, version(DISTRIBUTION)).parse_args(arguments)
    command = read_command(parsed, found)
    try:
        settings = load_settings(ManagementSettings, command)
    except ConfigurationError as refused:
        report_refusal(refused)
        return ExitCode.REFUSED
    if command.verb == CHECK_CONFIG:
        report_warnings(settings)
        return ExitCode.CLEAN

    async def run(lifecycle: Lifecycle) -> None:
        await serve(settings, found, version(DISTRIBUTION), lifecycle)

    return run_process(run)


if __name__ == "__main__":
    sys.exit(main())
