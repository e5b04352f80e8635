"""`kubectl-compute`, which kubectl runs as `kubectl compute`: parses words, runs one command.

The module of a command is imported when it is run, so that `--help` takes no more than a bare
Python. Every expected failure is one line and an exit code, never a traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from compute_kubectl.commands.exits import NOT_JUDGED, READY, USAGE, CommandError
from compute_kubectl.commands.table import COMMANDS, Command

if TYPE_CHECKING:
    from compute_kubectl.commands.session import Ports
    from compute_kubectl.commands.terminal import Terminal

PROGRAM = "kubectl compute"
INTRODUCTION = "Why a Workload does not run, across planes. Only restart and scale write."
ENDING = "Exit codes: 0 all Ready, 1 something is not, 2 usage, 3 could not be judged."


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one run; installed as `kubectl-compute`."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = run(words, os.environ)
        sys.stdout.flush()  # a pipe without a reader fails here, not at the end of Python
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe has ended, as `head` does; nothing is left to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READY


def run(
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    terminal: Terminal | None = None,
    ports: Ports | None = None,
) -> int:
    """Runs one command; `terminal` and `ports` are given by tests."""
    if not words or words[0] in {"-h", "--help", "help"}:
        sys.stdout.write(overview())
        return READY if words else USAGE
    command = next((one for one in COMMANDS if one.name == words[0]), None)
    if command is None:
        known = ", ".join(one.name for one in COMMANDS)
        sys.stderr.write(f"{PROGRAM}: {words[0]!r} is no command; there are: {known}\n")
        return USAGE
    module = importlib.import_module(command.module)
    parser = build_parser(command, module)
    try:
        options = parser.parse_args(list(words[1:]))
    except SystemExit as ended:  # argparse has printed help or the error
        return ended.code if isinstance(ended.code, int) else USAGE
    return _run(module, options, environ, terminal, ports)


def _run(
    module: ModuleType,
    options: argparse.Namespace,
    environ: Mapping[str, str],
    terminal: Terminal | None,
    ports: Ports | None,
) -> int:
    from compute_kubectl.commands.session import Session
    from compute_kubectl.commands.terminal import Terminal

    no_color = getattr(options, "no_color", False)
    terminal = terminal or Terminal.of_process(environ, no_color=no_color)
    session = Session(options, terminal, environ, ports=ports)
    try:
        code: int = module.run(session)
    except CommandError as failure:
        terminal.warn(f"error: {failure}")
        return failure.code
    except RecursionError:
        terminal.warn("error: an object is nested too deeply to be judged")
        return NOT_JUDGED
    finally:
        session.close()
        terminal.end_progress()
    return code


def overview() -> str:
    """The help of all commands."""
    lines = [f"usage: {PROGRAM} COMMAND [NAME] [flags]", "", INTRODUCTION, ""]
    lines += [f"  {one.name:<12}{one.summary}" for one in COMMANDS]
    lines += [
        "",
        "examples:",
        f"  {PROGRAM} why web -n shop",
        f"  {PROGRAM} why --all",
        "",
        f"{PROGRAM} COMMAND --help has the flags and examples of a command.",
        ENDING,
    ]
    return "\n".join(lines) + "\n"


def build_parser(command: Command, module: ModuleType) -> argparse.ArgumentParser:
    """The parser of one command, with its examples."""
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {command.name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=f"examples:\n{module.EXAMPLES}\n{ENDING}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
