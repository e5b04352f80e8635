"""The planes of a run by role, and the identities of its operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from e2e.world.port import HOME, HUB, MANAGEMENT, ROOT

Side: TypeAlias = Literal["root", "home", "hub", "cell", "project"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The planes and operators of a run, by name."""

    cells: frozenset[str] = frozenset()
    # Objects that a scenario created by hand and leaves, without a root (`plane Kind key`).
    by_hand: frozenset[str] = field(default_factory=frozenset[str])
    # Cells that are lost permanently; objects on them are not checked.
    lost: frozenset[str] = field(default_factory=frozenset[str])
    # Operators may read ConfigMaps and Secrets.
    reads_data: bool = False

    def side_of(self, plane: str) -> Side:
        match plane:
            case _ if plane == ROOT:
                return "root"
            case _ if plane == HOME:
                return "home"
            case _ if plane == HUB:
                return "hub"
            case _:
                return "cell" if plane in self.cells else "project"

    def is_operator(self, identity: str) -> bool:
        return identity == MANAGEMENT or identity in self.cells
