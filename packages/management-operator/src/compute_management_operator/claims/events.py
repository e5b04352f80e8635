"""Events on Clusters about claims that nothing backs, and the numbers they reported last. No I/O.

A finding is reported when its number changes; otherwise each sweep would record it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from compute_api_types import reasons
from compute_management_operator.claims.findings import UNKNOWN_CELL, CellFinding, ProjectFindings
from compute_management_operator.claims.observe import find_holder
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import RecordEvent

ACTION: Final = "SweepingClaims"


class ReportedFindings:
    """The last findings of each project."""

    def __init__(self, operator: ObjectKey) -> None:
        self._operator = operator
        self._counts: dict[PlaneName, dict[str, int]] = {}

    def note(
        self, plane: PlaneName, findings: ProjectFindings, caches: Caches
    ) -> Iterator[RecordEvent]:
        """Events for findings with a new number, which is remembered."""
        before = self._counts.pop(plane, {})
        counts = dict(findings.counts())
        if counts:
            self._counts[plane] = counts
        for cell, finding in findings.by_cell.items():
            if before.get(cell) != finding.count:
                yield self._event(plane, cell, finding, caches)

    def total(self) -> Counter[str]:
        """The numbers of all projects, by cell."""
        summed: Counter[str] = Counter()
        for counts in self._counts.values():
            summed.update(counts)
        return summed

    def forget(self, plane: PlaneName) -> None:
        self._counts.pop(plane, None)

    def _event(
        self, plane: PlaneName, cell: str, finding: CellFinding, caches: Caches
    ) -> RecordEvent:
        holder = Absent() if cell == UNKNOWN_CELL else find_holder(caches, cell)
        about, uid = (
            (self._operator, Uid("")) if isinstance(holder, Absent) else (holder.key, holder.uid)
        )
        return RecordEvent(
            about, uid, reasons.UNBACKED_CLAIMS, describe(plane, finding), ACTION, type="Warning"
        )


def describe(plane: PlaneName, finding: CellFinding) -> str:
    return (
        f'{finding.count} ResourceClaims of project "{plane}" are backed by no deployment in the '
        f"city of the cell they name: {finding.text}"
    )
