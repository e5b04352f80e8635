"""What looks and sweeps work with, and whom they tell."""

from __future__ import annotations

from typing import Protocol

from compute_cell_operator.quota_gate.ledger import Record
from compute_cell_operator.quota_gate.place import Place
from compute_cell_operator.quota_gate.projects import Project, Projects
from compute_operator_kit.apply.desk import Recorder
from compute_operator_kit.clock import Clock
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.measures import Measures
from compute_quota_client import ClaimKey, QuotaUnavailableError


class Around(Protocol):
    """The worker, as its parts see it."""

    @property
    def cell(self) -> str:
        """The name of this cell: whose claims are ours."""
        ...

    @property
    def clock(self) -> Clock: ...

    @property
    def measures(self) -> Measures: ...

    @property
    def recorder(self) -> Recorder: ...

    @property
    def projects(self) -> Projects: ...

    def tell(self, key: ObjectKey) -> None:
        """The finding for an Instance has changed."""
        ...

    def wake(self, key: ObjectKey) -> None:
        """Something may be news about a slot: it is looked at, if need be with a request."""
        ...

    def claim_changed(self, project: Project, claim: ClaimKey) -> None:
        """The watch of a project says so."""
        ...

    def put_aside(self, project: Project, record: Record, error: QuotaUnavailableError) -> None:
        """The slot waits until the project answers."""
        ...

    def await_answer(self, project: Project, place: Place, error: QuotaUnavailableError) -> None:
        """The project is away: one probe asks for a claim, there or not, until it answers."""
        ...

    def ask_sweep(self, project: str) -> None:
        """Has the claims of a project judged together, soon."""
        ...

    def stop_following(self, record: Record) -> None:
        """Its claim need not be watched."""
        ...
