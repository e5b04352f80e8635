"""The command line of an operator: a run until SIGTERM, or one of its small commands.

Both operators run through this one function, so that a configuration which `check-config` accepts
is read in the same way by the process. A refused configuration has exit code 2 and one line per
problem; nothing is started for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Generic

from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config.loader import (
    CHECK_CONFIG,
    COMPLETION,
    SettingsT,
    Verb,
    build_parser,
    load_settings,
    read_command,
)
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.process.completion import derive_completion
from compute_operator_kit.process.lifecycle import (
    ExitCode,
    Lifecycle,
    report_refusal,
    report_warnings,
    run_process,
)
from compute_operator_kit.process.operator_process import ProcessInfo


@dataclass(frozen=True, slots=True)
class Program(Generic[SettingsT]):
    """An operator as a program: its names, its configuration file, and the coroutine to run."""

    component: str
    distribution: str  # of which the version is shown
    home: PlaneName
    settings: type[SettingsT]
    run: Callable[[SettingsT, ProcessInfo, Lifecycle], Coroutine[None, None, None]]
    verbs: tuple[Verb, ...] = ()  # shown in help; the operator handles them when they come first


def run_program(
    program: Program[SettingsT],
    arguments: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> ExitCode:
    """Runs the operator, or checks its configuration; `SystemExit` for `--version`, help and wrong
    usage.
    """
    environ = os.environ if environ is None else environ
    info = ProcessInfo(program.component, version(program.distribution), program.home, environ)
    parser = build_parser(program.component, info.version, program.verbs)
    parsed = parser.parse_args(arguments)
    command = read_command(parsed, environ)
    if command.verb == COMPLETION:
        sys.stdout.write(derive_completion(parser, str(parsed.shell)))
        return ExitCode.CLEAN
    if command.verb in {verb.name for verb in program.verbs}:
        parser.error(f"{command.verb} comes first, before all flags")
    try:
        settings = load_settings(program.settings, command)
    except ConfigurationError as refused:
        report_refusal(refused)
        return ExitCode.REFUSED
    if command.verb == CHECK_CONFIG:
        report_warnings(settings)
        sys.stdout.write(f"{command.server_config}: valid, kind {settings.KIND}\n")
        sys.stdout.writelines(f"  {line}\n" for line in settings.enabled())
        return ExitCode.CLEAN
    return run_process(lambda lifecycle: program.run(settings, info, lifecycle))
