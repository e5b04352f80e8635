"""Oracles of the example operator: invariants of every run, with and without faults."""

from __future__ import annotations

from datetime import timedelta

from compute_sim_planes.history import Commit, Request
from compute_sim_planes.oracles.invariants import (
    Budget,
    FieldOwnership,
    ProcessFacts,
    Stability,
    eventual_stability,
    field_ownership,
    join_violations,
    last_fault,
    owns_names,
    process_hygiene,
    request_budget,
)
from example_operator.notes import FINALIZER, HUB, NAME_LABEL, PLANE_LABEL, SOURCE_UID
from example_operator.world import LIMITS, Run

ON_PROJECTS = FieldOwnership(
    finalizers=owns_names(FINALIZER), status=owns_names("phase", "observedGeneration")
)
ON_HUB = FieldOwnership(
    labels=owns_names(PLANE_LABEL, NAME_LABEL),
    annotations=owns_names(SOURCE_UID),
    spec=owns_names("*"),
)
# After the last fault, or the last write of a user.
SETTLE = timedelta(seconds=60)
QUIET = timedelta(minutes=10)


def ownership_of(request: Request, commit: Commit) -> FieldOwnership | None:
    if request.caller.identity == "user":
        return None
    return ON_HUB if commit.plane == HUB else ON_PROJECTS


def find_violations(run: Run, *, is_reference: bool = False, is_undisturbed: bool = False) -> str:
    """All violations, one per line; empty for a correct run.

    `is_undisturbed`: no user edits while keys fail, so that the waits between reconciles are the
    back-off and must grow.
    """
    by_user = [
        r.at for r in run.history.of(Request) if r.caller.identity == "user" and r.address.is_write
    ]
    since = max([last_fault(run.history), *by_user])
    spans = [name for process in run.world.processes for name in process.spans.open]
    facts = ProcessFacts(
        open_spans=spans, error_lines=run.world.error_lines, is_reference_run=is_reference
    )
    jitter = 0.25 if is_undisturbed else 1.0
    budget = Budget(rate=LIMITS.qps, burst=LIMITS.burst, jitter=jitter)
    return join_violations(
        [
            *eventual_stability(run.history, since=since, rules=Stability(SETTLE, QUIET)),
            *field_ownership(run.history, ownership_of),
            *process_hygiene(run.history, run.report, facts),
            *request_budget(run.history, budget, at_rest_since=since + SETTLE),
        ]
    )
