"""O8: a project without faults waits at most twice as long as in the run without faults.

The measured time is from a tenant's write of a Workload or deployment until the hub has the
deployment at that generation.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import orjson

from compute_api_types import labels
from compute_sim_planes.history import Commit, History
from compute_sim_planes.oracles.invariants import Violation
from e2e.world.objects import annotations_of, generation_of, uid_of
from e2e.world.port import HUB

# Smaller differences come from the order of simultaneous events, not from waiting.
RESOLUTION: Final = timedelta(milliseconds=250)


def times_to_visible(history: History, project: str) -> list[timedelta]:
    """One time per generation of the project's deployments that reached the hub, in order."""
    return [seen - written for written, seen in _pairs(history, project)]


def bystander_liveness(history: History, baseline: History, project: str) -> list[Violation]:
    """O8 for one project that no fault touched."""
    usual = max(times_to_visible(baseline, project), default=timedelta())
    allowed = max(2 * usual, RESOLUTION)
    pairs = [*_pairs(history, project)]
    violations = [
        Violation("O8", seen, f"{project} waited {seen - written}, usually {usual}")
        for written, seen in pairs
        if seen - written > allowed
    ]
    if len(pairs) < len(times_to_visible(baseline, project)):
        message = f"only {len(pairs)} changes of {project} became visible"
        violations.append(Violation("O8", history.now, message))
    return violations


def _pairs(history: History, project: str) -> Iterator[tuple[datetime, datetime]]:
    """When a generation was written, and when the hub had it."""
    written: dict[tuple[str, str, str], datetime] = {}
    hub_of: dict[str, str] = {}
    for commit in history.of(Commit):
        if not commit.after:
            continue
        document = orjson.loads(commit.after)
        if commit.plane == project and commit.kind == "Namespace":
            hub_of[commit.key] = f"ns-{uid_of(document)}"
        elif commit.plane == project and commit.kind == "WorkloadDeployment":
            namespace, _, name = commit.key.partition("/")
            key = (hub_of.get(namespace, ""), name, str(generation_of(document)))
            written.setdefault(key, commit.at)
        elif commit.plane == HUB and commit.kind == "WorkloadDeployment":
            namespace, _, name = commit.key.partition("/")
            generation = str(annotations_of(document).get(labels.PROJECT_GENERATION, ""))
            begun = written.pop((namespace, name, generation), None)
            if begun is not None:
                yield begun, commit.at
