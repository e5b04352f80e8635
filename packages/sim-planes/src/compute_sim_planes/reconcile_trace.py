"""A tracing port that records an operator's reconciles in the history.

It implements the operators' tracing interface without importing them. Oracles read from it how
often an object was reconciled, and whether a span was left open.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from compute_sim_planes.history import History


@dataclass(slots=True)
class ReconcileTrace:
    """Traces reconciles; `open` has the names of open spans."""

    history: History
    open: list[str] = field(default_factory=list[str])

    @contextmanager
    def reconcile(self, controller: str, key: object) -> Generator[ReconcileSpan]:
        name = f"{controller} {key}"
        self.open.append(name)
        try:
            yield ReconcileSpan(self.history, controller, str(key))
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
class ReconcileSpan:
    """One reconcile; recorded with its outcome."""

    history: History
    controller: str
    key: str

    def set_outcome(self, outcome: str) -> None:
        self.history.add_reconcile(self.controller, self.key, outcome)
