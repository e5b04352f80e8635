"""The command `./dev demo`: its options, and how a run ends.

Exit code 0 when everything was shown; 1 when something failed, with what failed and where the logs
are; 2 for options nobody knows; 128 and the signal's number when it was interrupted.
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

from e2e.demo.picture import Progress
from e2e.demo.recording import record
from e2e.demo.scene import DemoError, Scene
from e2e.demo.screen import Screen
from e2e.demo.stage import Stage
from e2e.demo.story import Story
from e2e.planes.errors import PlanesError

FAILED: Final = 1
SIGNALLED: Final = 128
FURTHER: Final = (
    "README.md                      what this is, and how it is installed",
    "docs/architecture.md           who writes what on which plane",
    "./dev demo --keep              planes stay up, for kubectl",
    "./dev test                     every check that needs Python alone",
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the command line says."""

    planes: str
    is_kept: bool
    is_recorded: bool


def parse(arguments: Sequence[str] | None) -> Chosen:
    parser = argparse.ArgumentParser(
        prog="./dev demo", description="The whole chain at work, told in a minute."
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
    found = parser.parse_args(arguments)
    return Chosen(found.planes, found.keep, found.record)


class Playhouse(Scene, Protocol):
    """A scene with a building around it."""

    @property
    def logs(self) -> Path: ...

    @property
    def kubeconfig(self) -> Path: ...


class Interrupts:
    """Ctrl-C and SIGTERM: the first ends the work; cleaning up is not disturbed."""

    def __init__(self) -> None:
        self.number = 0
        self._task = asyncio.current_task()
        for one in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(one, self._end, int(one))

    def _end(self, number: int) -> None:
        if not self.number and self._task is not None:
            self.number = number
            self._task.cancel()


async def show(chosen: Chosen, screen: Screen) -> int:
    """Tells the story, and how it ended."""
    interrupts = Interrupts()
    screen.title(
        f"Compute Federation on {chosen.planes} planes: the management operator and the cell "
        "operators of DFW and ORD, each a process, with the configuration and rights we ship"
    )
    try:
        async with open_house(chosen, screen) as house:
            await tell(chosen, screen, house)
    except asyncio.CancelledError:
        screen.clear()
        if chosen.is_kept and screen.has_ended:
            screen.say("Everything was taken down.")
            return 0
        screen.say("Interrupted; everything was taken down, nothing is left.")
        return SIGNALLED + interrupts.number
    return 0


def open_house(chosen: Chosen, screen: Screen) -> AbstractAsyncContextManager[Playhouse]:
    def report(done: int, total: int, what: str) -> None:
        screen.draw([], Progress(done, total, what, screen.elapsed))

    if chosen.planes == "real":
        # Only then: it needs what only the real planes need.
        from e2e.demo.real import RealHouse

        return RealHouse(report)
    return Stage(report)


async def tell(chosen: Chosen, screen: Screen, house: Playhouse) -> None:
    screen.say(f"Up after {screen.elapsed.total_seconds():.1f} s.")
    story = Story(house, screen)
    try:
        await story.tell()
    except (DemoError, PlanesError) as failure:
        failure.add_note(f"while: {story.step}")
        failure.add_note(f"logs: {house.logs}")
        raise
    screen.title("What is left, and how to look further")
    beside = "until Ctrl-C" if chosen.is_kept else "and ends with this demo"
    screen.say(f"Workload api in project {house.places[1].project} runs {beside}.")
    for line in FURTHER:
        screen.show(line)
    screen.say(f"All shown in {screen.elapsed.total_seconds():.1f} s.")
    screen.has_ended = True
    if chosen.is_kept:
        await keep(screen, house)


async def keep(screen: Screen, house: Playhouse) -> None:
    """Stays until Ctrl-C, or until something falls over."""
    screen.title("Planes and operators stay up until Ctrl-C")
    second = house.places[1]
    screen.show(f"export KUBECONFIG={house.kubeconfig}")
    kinds = "workloads,workloaddeployments,instances"
    screen.show(f"kubectl --context {second.project} -n {second.namespace} get {kinds}")
    screen.show("kubectl config get-contexts")
    while True:
        house.check()
        await asyncio.sleep(1)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = parse(arguments)
    screen = Screen(is_live=False if chosen.is_recorded else None)
    try:
        code = asyncio.run(show(chosen, screen))
        if code == 0 and chosen.is_recorded:
            record(screen.transcript)
    except (DemoError, PlanesError) as failure:
        # The last words of a process are long: what failed and where to look comes before them.
        first, *words = str(failure).splitlines()
        lines = [first, *getattr(failure, "__notes__", ()), *words]
    except OSError as failure:
        # A full disk, a forbidden folder: the world's, not ours.
        lines = [f"{failure.filename or 'the machine'}: {failure.strerror or failure}"]
    else:
        return code
    screen.clear()
    sys.stdout.flush()
    sys.stderr.write("\n".join(("demo failed: " + lines[0], *lines[1:])) + "\n")
    return FAILED
