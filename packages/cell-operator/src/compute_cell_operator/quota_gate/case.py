"""One slot with its Instance, its project and the claim it needs: what a look works on."""

from __future__ import annotations

from dataclasses import dataclass

from compute_cell_operator.quota_gate.apply import Work
from compute_cell_operator.quota_gate.evidence import Payer
from compute_cell_operator.quota_gate.findings import (
    BackendUnavailable,
    ClaimDenied,
    ClaimInvalid,
    Said,
    Undecided,
)
from compute_cell_operator.quota_gate.ledger import Record
from compute_cell_operator.quota_gate.occupancy import Subject
from compute_cell_operator.quota_gate.place import Place, derive_place
from compute_cell_operator.quota_gate.projects import Project


@dataclass(frozen=True, slots=True)
class Case:
    """See the module's text."""

    record: Record
    subject: Subject
    payer: Payer
    project: Project
    work: Work

    @property
    def place(self) -> Place:
        return derive_place(self.payer, self.subject.occupant.name)

    def keep_denial(self, said: Said) -> Said:
        """A denial that the pass may not have read yet is not replaced by a silence, nor by an
        outage.
        """
        record = self.record
        known = record.finding.said if record.finding and record.is_known(self.subject) else None
        is_silent = isinstance(said, BackendUnavailable | Undecided)
        return known if is_silent and isinstance(known, ClaimDenied | ClaimInvalid) else said
