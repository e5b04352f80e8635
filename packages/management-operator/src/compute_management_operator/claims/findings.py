"""Sums up what a sweep over the claims of one project found, by cell. Pure.

Prevents that a project with very many claims costs memory for each of them: numbers and the first
names are all that is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from compute_management_operator.claims.observe import Claim

MOST_NAMES: Final = 10  # in an event or a log line
UNKNOWN_CELL: Final = "unknown"  # in metrics, for a label that names no Cluster


@dataclass(slots=True)
class CellFinding:
    """Claims of one project that name one cell and that nothing in its city backs."""

    count: int = 0
    names: list[str] = field(default_factory=list[str])

    def add(self, claim: Claim) -> None:
        self.count += 1
        if len(self.names) < MOST_NAMES:
            self.names.append(claim.place)

    @property
    def text(self) -> str:
        more = self.count - len(self.names)
        return ", ".join(self.names) + (f" and {more} more" if more else "")


@dataclass(slots=True)
class ProjectFindings:
    """One sweep over one project; cells that are no Cluster are one entry."""

    by_cell: dict[str, CellFinding] = field(default_factory=dict[str, CellFinding])
    is_whole: bool = True  # every claim was looked at

    def add(self, cell: str, claim: Claim) -> None:
        self.by_cell.setdefault(cell, CellFinding()).add(claim)

    def counts(self) -> Mapping[str, int]:
        return {cell: found.count for cell, found in self.by_cell.items()}
