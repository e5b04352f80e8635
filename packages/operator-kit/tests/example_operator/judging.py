"""What must hold after every run of the example, faulty or not."""

from __future__ import annotations

from datetime import timedelta

from compute_sim_planes.history import Commit, Request
from compute_sim_planes.oracles import (
    Budget,
    Ownership,
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

ON_PROJECTS = Ownership(
    finalizers=owns_names(FINALIZER), status=owns_names("phase", "observedGeneration")
)
ON_HUB = Ownership(
    labels=owns_names(PLANE_LABEL, NAME_LABEL),
    annotations=owns_names(SOURCE_UID),
    spec=owns_names("*"),
)
# After the last fault, or after the last thing a user did.
SETTLE = timedelta(seconds=60)
QUIET = timedelta(minutes=10)


def ownership_of(request: Request, commit: Commit) -> Ownership | None:
    if request.caller.identity == "user":
        return None
    return ON_HUB if commit.plane == HUB else ON_PROJECTS


def judge(run: Run, *, is_reference: bool = False, is_undisturbed: bool = False) -> str:
    """All violations, a line each; empty when the run was in order.

    `is_undisturbed`: nobody edits while keys fail, so that back-off is the only reason for a pass
    and must grow.
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
