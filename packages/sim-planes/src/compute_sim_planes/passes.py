"""An operator's own account of its passes, written into the history beside what planes saw.

It has the shape of an operator's tracing port and knows nothing of the operator: oracles ask it how
often an object was looked at, and whether anything was left open.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from compute_sim_planes.history import History


@dataclass(slots=True)
class RecordedPasses:
    """Traces of passes; `open` names those that have not ended."""

    history: History
    open: list[str] = field(default_factory=list[str])

    @contextmanager
    def reconcile(self, controller: str, key: object) -> Generator[PassRecord]:
        name = f"{controller} {key}"
        self.open.append(name)
        try:
            yield PassRecord(self.history, controller, str(key))
        finally:
            self.open.remove(name)

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        self.open.append(name)
        try:
            yield
        finally:
            self.open.remove(name)


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One pass, once it says how it ended."""

    history: History
    controller: str
    key: str

    def set_outcome(self, outcome: str) -> None:
        self.history.add_pass(self.controller, self.key, outcome)
