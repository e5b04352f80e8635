"""Claims of one project that nothing backs, counted by cell. Pure.

Only numbers and the first names are kept, so that a project with very many claims does not cost
memory for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from compute_management_operator.claims.observe import ProjectClaim

MOST_NAMES: Final = 10  # in an event or a log line
UNKNOWN_CELL: Final = "unknown"  # in metrics, for a label that names no Cluster


@dataclass(slots=True)
class CellFinding:
    """Claims of one project that name one cell and have no backing in its city."""

    count: int = 0
    names: list[str] = field(default_factory=list[str])

    def add(self, claim: ProjectClaim) -> None:
        self.count += 1
        if len(self.names) < MOST_NAMES:
            self.names.append(claim.claim_key)

    @property
    def text(self) -> str:
        more = self.count - len(self.names)
        return ", ".join(self.names) + (f" and {more} more" if more else "")


@dataclass(slots=True)
class ProjectFindings:
    """One sweep over one project; all cells without a Cluster share one entry."""

    by_cell: dict[str, CellFinding] = field(default_factory=dict[str, CellFinding])
    is_whole: bool = True  # every claim was read

    def add(self, cell: str, claim: ProjectClaim) -> None:
        self.by_cell.setdefault(cell, CellFinding()).add(claim)

    def counts(self) -> Mapping[str, int]:
        return {cell: finding.count for cell, finding in self.by_cell.items()}
