"""The way from a command line to a running process, the same for both operators.

`check-config` reads the configuration, says what is wrong with it and starts nothing; running does
the same first, and then also wants every configured file to be there. Knows no operator: what runs
is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from compute_operator_kit.configuration import (
    CHECK_CONFIG,
    ConfigurationError,
    SettingsT,
    build_parser,
    check_files,
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


@dataclass(frozen=True, slots=True)
class Program(Generic[SettingsT]):
    """An operator, as its command line sees it."""

    name: str
    version: str
    settings: type[SettingsT]
    run: Callable[[SettingsT, Lifecycle], Coroutine[None, None, None]]


def run_program(
    program: Program[SettingsT], argv: Sequence[str], environ: Mapping[str, str]
) -> ExitCode:
    """Does what the command line asks for; `SystemExit` for `--version`, help and wrong usage."""
    found = build_parser(program.name, program.version).parse_args(argv)
    command = read_command(found, environ)
    try:
        settings = load_settings(program.settings, command)
        if command.verb == CHECK_CONFIG:
            report_warnings(settings)
            sys.stdout.write(f"{command.server_config}: is valid\n")
            return ExitCode.CLEAN
        check_files(settings)
    except ConfigurationError as refused:
        report_refusal(refused)
        return ExitCode.REFUSED
    return run_process(lambda lifecycle: program.run(settings, lifecycle))
