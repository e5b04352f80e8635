"""Text of the writes in a simulated world, as a golden file that can be reviewed.

One line per write that took effect: the plane, the request, and the object's conditions afterwards.
Times are left out, so that a story changes only when the writes do.
"""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from cell_builders.world import World, condition_of
from compute_operator_kit.core.json import JsonObject
from compute_sim_planes.history import Request

SHOWN = ("QuotaGranted", "Ready")


class Storyteller:
    """Of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lines: list[str] = []
        self._noted = 0

    def say(self, text: str) -> None:
        """What people or the world do."""
        self._lines += ["", f"* {text}"] if self._lines else [f"* {text}"]

    def note(self) -> None:
        """What all processes wrote since the last time."""
        requests = [
            one
            for process in self._world.processes
            for one in self._world.writes(process.name)
            if one.commits
        ]
        requests.sort(key=lambda one: one.number)
        self._lines += [describe(one) for one in requests[self._noted :]] or [
            "  nothing is written"
        ]
        self._noted = len(requests)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def describe(request: Request) -> str:
    """One write, in a line."""
    address = request.address
    what = f"{address.kind} {address.name}"
    part = f" {address.subresource}" if address.subresource else ""
    return f"  {address.plane:<6} {address.verb:<7}{what}{part}{_words(request)}"


def _words(request: Request) -> str:
    """Conditions of an object after its status was written."""
    if request.address.subresource != "status":
        return ""
    document: JsonObject = orjson.loads(request.commits[-1].after)
    shown = [(kind, condition_of(document, kind)) for kind in SHOWN]
    return "".join(f" · {kind} {words[0]}/{words[1]}" for kind, words in shown if words[0])


def assert_golden(file: Path, text: str) -> None:
    """`UPDATE_GOLDENS=1` writes the text anew."""
    if "UPDATE_GOLDENS" in os.environ:
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")
