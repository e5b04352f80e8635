"""The table of commands; a command's module is imported only where it is run.

A module has `EXAMPLES`, `add_flags(parser)` and `run(session) -> int`; a new command is a row of
`COMMANDS`, and help and completion follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Command:
    """A command by name, with the module that has its flags and its run."""

    name: str
    summary: str
    module: str


COMMANDS: Final = (
    Command("why", "why a Workload does not run", "compute_kubectl.commands.why"),
    Command("tree", "its objects on all planes", "compute_kubectl.commands.tree"),
    Command("timeline", "what happened to it, oldest first", "compute_kubectl.commands.timeline"),
    Command("cities", "cells and Instances per city", "compute_kubectl.commands.cities"),
    Command("quota", "limits, use and waits of the project", "compute_kubectl.commands.quota"),
    Command("plan", "what a file would change; writes nothing", "compute_kubectl.commands.plan"),
    Command("ui", "a page that shows all of it", "compute_kubectl.commands.ui"),
    Command("restart", "replace all Instances in turn", "compute_kubectl.commands.restart"),
    Command("scale", "change the number of replicas", "compute_kubectl.commands.scale"),
    Command("completion", "a completion script for a shell", "compute_kubectl.commands.completion"),
)
