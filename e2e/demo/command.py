"""The command `./dev demo`: its options, and how a run ends.

Exit code 0 if everything was shown; 1 after a failure, with its cause and the place of the logs; 2
for unknown options; 128 plus the signal's number after an interrupt.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from e2e.demo.backend import DemoBackend, DemoError
from e2e.demo.environment import EmbeddedEnvironment
from e2e.demo.picture import Progress
from e2e.demo.recording import record
from e2e.demo.screen import Screen
from e2e.demo.story import Story
from e2e.harness.errors import PlanesError

FAILED: Final = 1
SIGNALLED: Final = 128
FURTHER: Final = (
    "README.md                      what this is, and how it is installed",
    "docs/architecture.md           which component writes what, and where",
    "./dev demo --keep              planes stay up, for kubectl",
    "./dev test                     every check that needs Python alone",
)


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The parsed command line."""

    planes: str
    is_kept: bool
    is_recorded: bool
    holds_outage: bool = False


def parse(arguments: Sequence[str] | None) -> DemoOptions:
    parser = argparse.ArgumentParser(
        prog="./dev demo",
        description="Both operators at work on embedded or real planes, shown in a minute.",
    )
    parser.add_argument(
        "--planes", choices=("embedded", "real"), default="embedded",
        help="simulated planes in one process (default), or etcd, Kubernetes and Karmada",
    )  # fmt: skip
    parser.add_argument(
        "--keep", action="store_true", help="leave everything up at the end, until Ctrl-C"
    )
    parser.add_argument(
        "--record", action="store_true", help="put the output of this run into README.md"
    )
    parser.add_argument(
        "--outage", action="store_true",
        help="hold the outage until the project states that the city is not heard: a minute more",
    )  # fmt: skip
    parsed = parser.parse_args(arguments)
    return DemoOptions(parsed.planes, parsed.keep, parsed.record, parsed.outage)


class DemoEnvironment(DemoBackend, Protocol):
    """A `DemoBackend` with logs and a kubeconfig."""

    @property
    def logs(self) -> Path: ...

    @property
    def kubeconfig(self) -> Path: ...


class Interrupts:
    """Ctrl-C and SIGTERM: the first one cancels the run; further ones do not disturb the
    cleanup.
    """

    def __init__(self) -> None:
        self.number = 0
        self._task = asyncio.current_task()
        for one in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(one, self._end, int(one))

    def _end(self, number: int) -> None:
        if not self.number and self._task is not None:
            self.number = number
            self._task.cancel()


async def show(chosen: DemoOptions, screen: Screen) -> int:
    """Runs the story and prints how it ended."""
    interrupts = Interrupts()
    screen.title(
        f"Compute Federation on {chosen.planes} planes: the management operator and the cell "
        "operators of DFW and ORD, each a process, with the configuration and rights we ship"
    )
    try:
        async with open_environment(chosen, screen) as environment:
            await run_story(chosen, screen, environment)
    except asyncio.CancelledError:
        screen.clear()
        if chosen.is_kept and screen.has_ended:
            screen.say("Everything was taken down.")
            return 0
        screen.say("Interrupted; everything was taken down, nothing is left.")
        return SIGNALLED + interrupts.number
    return 0


def open_environment(
    chosen: DemoOptions, screen: Screen
) -> AbstractAsyncContextManager[DemoEnvironment]:
    def report(done: int, total: int, what: str) -> None:
        screen.draw([], Progress(done, total, what, screen.elapsed))

    if chosen.planes == "real":
        # Imported here only, because it needs the dependencies of real planes.
        from e2e.demo.real import RealDemoEnvironment

        return RealDemoEnvironment(report)
    return EmbeddedEnvironment(report)


async def run_story(chosen: DemoOptions, screen: Screen, environment: DemoEnvironment) -> None:
    screen.say(f"Up after {screen.elapsed.total_seconds():.1f} s.")
    story = Story(environment, screen, holds_outage=chosen.holds_outage)
    try:
        await story.run()
    except (DemoError, PlanesError) as failure:
        failure.add_note(f"while: {story.step}")
        failure.add_note(f"logs: {environment.logs}")
        raise
    screen.title("Next steps")
    beside = "until Ctrl-C" if chosen.is_kept else "and ends with this demo"
    screen.say(
        f"Workload api in project {environment.project_namespaces[1].project} runs {beside}."
    )
    for line in FURTHER:
        screen.show(line)
    screen.say(f"All shown in {screen.elapsed.total_seconds():.1f} s.")
    screen.has_ended = True
    if chosen.is_kept:
        await keep_running(screen, environment)


async def keep_running(screen: Screen, environment: DemoEnvironment) -> None:
    """Waits until Ctrl-C, or until a process ends."""
    screen.title("Planes and operators stay up until Ctrl-C")
    second = environment.project_namespaces[1]
    screen.show(f"export KUBECONFIG={environment.kubeconfig}")
    kinds = "workloads,workloaddeployments,instances"
    screen.show(f"kubectl --context {second.project} -n {second.namespace} get {kinds}")
    screen.show(f"kubectl compute why --all --context {second.project} -n {second.namespace}")
    screen.show("kubectl config get-contexts")
    while True:
        environment.check()
        await asyncio.sleep(1)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = parse(arguments)
    screen = Screen(is_live=False if chosen.is_recorded else None)
    try:
        code = asyncio.run(show(chosen, screen))
        if code == 0 and chosen.is_recorded:
            record(screen.transcript)
    except (DemoError, PlanesError) as failure:
        # A process's last lines are long, so failure and log folder come before them.
        first, *words = str(failure).splitlines()
        lines = [first, *getattr(failure, "__notes__", ()), *words]
    except OSError as failure:
        # A full disk or a forbidden folder is no fault of the demo.
        lines = [f"{failure.filename or 'the machine'}: {failure.strerror or failure}"]
    else:
        return code
    screen.clear()
    sys.stdout.flush()
    sys.stderr.write("\n".join(("demo failed: " + lines[0], *lines[1:])) + "\n")
    return FAILED
