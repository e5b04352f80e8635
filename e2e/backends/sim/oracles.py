"""Evaluates every oracle that applies to a scenario on simulated planes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from compute_sim_planes.history import History, Request
from compute_sim_planes.oracles.invariants import (
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
from compute_sim_planes.oracles.quota import quota_safety
from compute_sim_planes.time.clock import LoopReport
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.external import EXTERNAL_CONTROLLERS
from e2e.backends.sim.rights import refusals
from e2e.backends.sim.sizes import quota_rules
from e2e.oracles.audit_trail import audit_trail
from e2e.oracles.comparison import compare
from e2e.oracles.layout import Layout
from e2e.oracles.leaks import leaks_in_history, leaks_in_series
from e2e.oracles.orphans import no_orphans
from e2e.oracles.ownership import ownership_in
from e2e.oracles.tenancy import tenancy
from e2e.oracles.truth import untruthful_statuses
from e2e.world.port import MANAGEMENT

ORACLES: Final = ("O1", "O2", "O3", "O4", "O5", "O6", "O7", "O8", "O9", "O10", "O11")
SETTLE: Final = timedelta(seconds=60)
# management.md 7: a deployment that no cell reports is *waiting* for a minute, then changes its
# condition. O3 allows twice the longest tier, which is this one if no cell operator runs.
UNREPORTED_TIER: Final = timedelta(seconds=60)
QUIET: Final = timedelta(minutes=10)
RATE: Final = 200.0  # clients.qpsPerPlane and burstPerPlane as shipped
BURST: Final = 400


async def rest(backend: SimBackend) -> None:
    """Waits until the run is at rest after the scenario's end and after the last fault, which may
    strike later, long enough for O3.
    """
    ended = backend.now()
    while backend.now() < (end := max(ended, last_fault(backend.history)) + _rest_time(backend)):
        backend.calm()
        await backend.sleep(end - backend.now())


def _rest_time(backend: SimBackend) -> timedelta:
    return settle_time(backend) + QUIET + timedelta(seconds=1)


def settle_time(backend: SimBackend) -> timedelta:
    return SETTLE if backend.needs.runs_cells else 2 * UNREPORTED_TIER


def find_violations(
    backend: SimBackend, report: LoopReport, errors: Sequence[str], *, is_reference: bool
) -> list[str]:
    """All violations of one run, a line each; comparisons with another run are apart."""
    history, layout = backend.history, layout_of(backend)
    acts = _acts(backend)
    settle = settle_time(backend)
    since = max([last_fault(history), *acts])
    spans = [name for process in backend.processes() for name in process.spans.open]
    expects_errors = not is_reference or backend.needs.expects_errors
    facts = ProcessFacts(open_spans=spans, error_lines=errors, is_reference_run=not expects_errors)
    # Tenants and external controllers have limits of their own.
    ours = frozenset({MANAGEMENT, *layout.cells})
    budget = Budget(rate=RATE, burst=BURST, jitter=1.0, identities=ours)
    violations = [
        *eventual_stability(history, since=since, rules=Stability(settle, QUIET)),
        *(() if backend.needs.is_single else _federation_violations(history, layout)),
        *(quota_safety(history, quota_rules(layout)) if backend.needs.has_quota else ()),
        *process_hygiene(history, report, facts),
        *untruthful_statuses(history, layout, acts=acts if is_reference else None),
        *request_budget(history, budget, at_rest_since=since + settle),
    ]
    forbidden = [
        f"S1: {one.caller.identity} may not {one.address.verb} {one.address.resource} "
        f"{one.address.key} on {one.address.plane}"
        for one in refusals(history, layout.cells)
    ]
    broken = [
        f"provider of {cell}: {violation}"
        for cell, provider in backend.external.providers.items()
        for violation in provider.violations
    ]
    # Security statements that hold for every run (`docs/spec/faults.md` 6).
    security = [*forbidden, *audit_trail(history, layout), *_find_leaks(backend)]
    return [*(str(one) for one in violations), *security, *broken]


def _find_leaks(backend: SimBackend) -> list[str]:
    """Canaries in recorded objects and requests (S12); logs are searched while the run lasts."""
    series = {
        key
        for process in backend.processes()
        for kept in (process.measures.counts, process.measures.gauges, process.measures.values)
        for key in kept
    }
    return [*leaks_in_history(backend.history), *leaks_in_series(series)]


def _federation_violations(history: History, layout: Layout) -> list[Violation]:
    """Oracles about copies on other planes, which do not apply to a single cluster."""
    return [
        *no_orphans(history, layout),
        *tenancy(history, layout),
        *field_ownership(history, ownership_in(layout)),
    ]


def find_differences(
    backend: SimBackend, reference: SimBackend, *, is_paced: bool = True
) -> list[str]:
    """Differences between a run with faults and the same run without; O2 only of paced runs."""
    projects = [place.project for place in backend.project_namespaces]
    differences = compare(backend.history, reference.history, projects)
    return [str(one) for one in differences if is_paced or one.oracle != "O2"]


def layout_of(backend: SimBackend) -> Layout:
    cells = frozenset(cell.name for cell in backend.needs.cells)
    by_hand, lost = frozenset(backend.by_hand), frozenset(backend.lost)
    return Layout(cells, by_hand, lost, backend.needs.reads_data)


def _acts(backend: SimBackend) -> list[datetime]:
    """Times of requests and actions of users, which may cause a change of a condition."""
    others = {MANAGEMENT, *(cell.name for cell in backend.needs.cells), *EXTERNAL_CONTROLLERS}
    by_request = [
        one.at
        for one in backend.history.of(Request)
        if one.address.is_write and one.caller.identity not in others
    ]
    return sorted([*backend.acts, *by_request])
