"""Tells the platform what a sweep found: an event on the Cluster, and what is remembered of it.

Prevents a repetition with every sweep: a finding is reported when its number changes. Pure but for
what it remembers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from compute_api_types import reasons
from compute_management_operator.claims.findings import UNKNOWN_CELL, CellFinding, ProjectFindings
from compute_management_operator.claims.observe import find_holder
from compute_operator_kit.cache import Caches
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.objects import Absent

ACTION: Final = "SweepingClaims"


class Reported:
    """The last finding of each project."""

    def __init__(self, operator: ObjectKey) -> None:
        self._operator = operator
        self._counts: dict[PlaneName, dict[str, int]] = {}

    def note(self, plane: PlaneName, found: ProjectFindings, caches: Caches) -> Iterator[Emit]:
        """Events for what is new, and remembers all of it."""
        before = self._counts.pop(plane, {})
        counts = dict(found.counts())
        if counts:
            self._counts[plane] = counts
        for cell, finding in found.by_cell.items():
            if before.get(cell) != finding.count:
                yield self._event(plane, cell, finding, caches)

    def total(self) -> Counter[str]:
        """Over all projects, by cell."""
        summed: Counter[str] = Counter()
        for counts in self._counts.values():
            summed.update(counts)
        return summed

    def forget(self, plane: PlaneName) -> None:
        self._counts.pop(plane, None)

    def _event(self, plane: PlaneName, cell: str, finding: CellFinding, caches: Caches) -> Emit:
        holder = Absent() if cell == UNKNOWN_CELL else find_holder(caches, cell)
        about, uid = (
            (self._operator, Uid("")) if isinstance(holder, Absent) else (holder.key, holder.uid)
        )
        return Emit(
            about, uid, reasons.UNBACKED_CLAIMS, describe(plane, finding), ACTION, type="Warning"
        )


def describe(plane: PlaneName, finding: CellFinding) -> str:
    return (
        f'{finding.count} ResourceClaims of project "{plane}" are backed by no deployment in the '
        f"city of the cell they name: {finding.text}"
    )
