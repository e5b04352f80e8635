"""Which planes a run had, and what each of them is; and who wrote on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from e2e.backends.port import HOME, HUB, MANAGEMENT, ROOT

Side: TypeAlias = Literal["root", "home", "hub", "cell", "project"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The planes and operators of a run, by name."""

    cells: frozenset[str] = frozenset()
    # Objects that a scenario made by hand and leaves: nobody's children (`plane Kind key`).
    by_hand: frozenset[str] = field(default_factory=frozenset[str])
    # Cells that are gone for good: what they hold is out of reach.
    lost: frozenset[str] = field(default_factory=frozenset[str])

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
