"""Every oracle that applies, after a scenario on simulated planes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from compute_sim_planes.clock import LoopReport
from compute_sim_planes.history import History, Request
from compute_sim_planes.oracles import (
    Budget,
    ProcessFacts,
    Stability,
    Violation,
    eventual_stability,
    field_ownership,
    last_fault,
    process_hygiene,
    request_budget,
)
from compute_sim_planes.oracles_quota import quota_safety
from e2e.backends.port import MANAGEMENT
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.neighbours import NEIGHBOURS
from e2e.backends.sim.rights import refusals
from e2e.backends.sim.sizes import quota_rules
from e2e.faults.audit_trail import audit_trail
from e2e.faults.comparing import compare
from e2e.faults.layout import Layout
from e2e.faults.leaks import leaks_in_history, leaks_in_series
from e2e.faults.orphans import no_orphans
from e2e.faults.ownership import ownership_in
from e2e.faults.tenancy import tenancy
from e2e.faults.truth import truthful_status

ORACLES: Final = ("O1", "O2", "O3", "O4", "O5", "O6", "O7", "O8", "O9", "O10", "O11")
SETTLE: Final = timedelta(seconds=60)
# management.md 7: a deployment that no cell reports is *waiting* for a minute, then says so. O3
# allows twice the longest tier that applies, and this one does where no cell's operator runs.
UNREPORTED_TIER: Final = timedelta(seconds=60)
QUIET: Final = timedelta(minutes=10)
RATE: Final = 200.0  # clients.qpsPerPlane and burstPerPlane as shipped
BURST: Final = 400


async def rest(backend: SimBackend) -> None:
    """Lets a run come to rest after the scenario's last act, and be seen resting."""
    await backend.sleep(settle_time(backend) + QUIET + timedelta(seconds=1))


def settle_time(backend: SimBackend) -> timedelta:
    return SETTLE if backend.needs.runs_cells else 2 * UNREPORTED_TIER


def judge(
    backend: SimBackend, report: LoopReport, errors: Sequence[str], *, is_reference: bool
) -> list[str]:
    """All violations of one run by itself, a line each."""
    history, layout = backend.history, layout_of(backend)
    acts = _acts(backend)
    settle = settle_time(backend)
    since = max([last_fault(history), *acts])
    spans = [name for process in backend.processes() for name in process.spans.open]
    expects_errors = not is_reference or backend.needs.expects_errors
    facts = ProcessFacts(open_spans=spans, error_lines=errors, is_reference_run=not expects_errors)
    # Tenants and neighbours keep to limits of their own.
    ours = frozenset({MANAGEMENT, *layout.cells})
    budget = Budget(rate=RATE, burst=BURST, jitter=1.0, identities=ours)
    found = [
        *eventual_stability(history, since=since, rules=Stability(settle, QUIET)),
        *(() if backend.needs.is_single else _judge_federation(history, layout)),
        *(quota_safety(history, quota_rules(layout)) if backend.needs.has_quota else ()),
        *process_hygiene(history, report, facts),
        *truthful_status(history, layout, acts=acts if is_reference else None),
        *request_budget(history, budget, at_rest_since=since + settle),
    ]
    forbidden = [
        f"S1: {one.caller.identity} may not {one.address.verb} {one.address.resource} "
        f"{one.address.key} on {one.address.plane}"
        for one in refusals(history, layout.cells)
    ]
    broken = [
        f"provider of {cell}: {violation}"
        for cell, provider in backend.neighbours.providers.items()
        for violation in provider.violations
    ]
    # What holds of every run, whatever it is about (`docs/spec/faults.md` 6).
    security = [*forbidden, *audit_trail(history, layout), *_find_leaks(backend)]
    return [*(str(one) for one in found), *security, *broken]


def _find_leaks(backend: SimBackend) -> list[str]:
    """S12 in what is kept of a run; its log was read while it ran."""
    series = {
        key
        for process in backend.processes()
        for kept in (process.measures.counts, process.measures.gauges, process.measures.values)
        for key in kept
    }
    return [*leaks_in_history(backend.history), *leaks_in_series(series)]


def _judge_federation(history: History, layout: Layout) -> list[Violation]:
    """What crosses planes; in a single cluster nothing does."""
    return [
        *no_orphans(history, layout),
        *tenancy(history, layout),
        *field_ownership(history, ownership_in(layout)),
    ]


def judge_against(backend: SimBackend, reference: SimBackend) -> list[str]:
    """Violations of a run with faults against the same without."""
    projects = [place.project for place in backend.places]
    return [str(one) for one in compare(backend.history, reference.history, projects)]


def layout_of(backend: SimBackend) -> Layout:
    cells = frozenset(cell.name for cell in backend.needs.cells)
    return Layout(cells, frozenset(backend.by_hand), frozenset(backend.lost))


def _acts(backend: SimBackend) -> list[datetime]:
    """When somebody who is neither operator nor neighbour did anything."""
    others = {MANAGEMENT, *(cell.name for cell in backend.needs.cells), *NEIGHBOURS}
    by_request = [
        one.at
        for one in backend.history.of(Request)
        if one.address.is_write and one.caller.identity not in others
    ]
    return sorted([*backend.acts, *by_request])
