"""`python -m e2e.harness build`, `up`, `soak` and `with-kubectl`.

The noxfile calls the same functions. A failure is one line with a remedy and a non-zero exit code;
a traceback is a bug.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.harness.errors import PlanesError
from e2e.harness.planes.topology import TOPOLOGIES, Rates
from e2e.harness.programs.binaries import CHECKERS, NODES, PLANES
from e2e.harness.programs.build import build, find_programs
from e2e.harness.programs.store import Store
from e2e.harness.stack.stack import Options, RealPlanes
from e2e.harness.testing.soak import soak

INTERRUPTED = 130  # the shell's exit code for a program ended by Ctrl-C


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    try:
        match chosen.command:
            case "build":
                build_planes(with_nodes=chosen.nodes, with_checkers=chosen.judges)
            case "soak":
                asyncio.run(soak(say))
            case "with-kubectl":
                return with_kubectl(chosen.words)
            case _:
                asyncio.run(stay_up(_planes(chosen)))
    except PlanesError as failure:
        for line in (str(failure), *getattr(failure, "__notes__", ())):
            sys.stderr.write(line + "\n")
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("interrupted; nothing half-made is left\n")
        return INTERRUPTED
    return 0


def build_planes(*, with_nodes: bool = False, with_checkers: bool = False) -> None:
    """Builds every program that is missing."""
    store, began = Store.of_user(), time.monotonic()
    wanted = (*PLANES, *(NODES if with_nodes else ()), *(CHECKERS if with_checkers else ()))
    build(wanted, store, say)
    say(f"{len(wanted)} programs in {store.folder}, {time.monotonic() - began:.1f} s")


def with_kubectl(words: Sequence[str]) -> int:
    """Runs a command with the built kubectl first on its PATH; returns its exit code."""
    folder = find_programs(PLANES, Store.of_user())["kubectl"].parent
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return subprocess.run([*words], env={**os.environ, "PATH": path}, check=False).returncode


def _planes(chosen: argparse.Namespace) -> RealPlanes:
    options = Options(rates=Rates(chosen.rates), folder=chosen.folder, keep_folder=chosen.keep)
    return RealPlanes(TOPOLOGIES[chosen.topology], options)


async def stay_up(planes: RealPlanes) -> None:
    """Starts planes, prints how to reach them, and waits until Ctrl-C or SIGTERM."""
    ended = asyncio.Event()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    # Before the planes are up an interrupt cancels the start; afterwards it ends the wait.
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel if task else ended.set)
    async with planes:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        say(f"export KUBECONFIG={planes.kubeconfig}")
        say(f"contexts: {' '.join(planes.contexts)}")
        count, size = len(planes.processes), planes.rss() / 1024**3
        say(f"up in {planes.took.total_seconds():.1f} s: {count} processes, {size:.1f} GB")
        say("Ctrl-C takes all down")
        async with planes.guard():
            await ended.wait()
        began = time.monotonic()
    say(f"down in {time.monotonic() - began:.1f} s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.harness", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build the planes' programs")
    building.add_argument("--nodes", action="store_true", help="also what real nodes need")
    building.add_argument("--judges", action="store_true", help="also promtool, for alerting rules")
    commands.add_parser("soak", help="planes up and down many times; nothing may be left over")
    aided = commands.add_parser("with-kubectl", help="run a command beside the built kubectl")
    aided.add_argument("words", nargs=argparse.REMAINDER)
    up = commands.add_parser("up", help="bring planes up and stay")
    up.add_argument("--topology", choices=sorted(TOPOLOGIES), default="full")
    up.add_argument("--rates", choices=[rate.value for rate in Rates], default=Rates.QUICK.value)
    up.add_argument("--folder", type=Path, help="the run folder; a new temporary one if not given")
    up.add_argument("--keep", action="store_true", help="leave the run folder when all is down")
    return parser


if __name__ == "__main__":
    sys.exit(main())
