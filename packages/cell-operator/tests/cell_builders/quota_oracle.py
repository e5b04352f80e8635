"""O5 over a run of the cell: what an Instance takes is derived here, apart from the operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cell_builders.documents import CELL_NAME, PROJECT
from cell_builders.milo import BUDGET
from cell_builders.quota_scenes import ONE
from cell_builders.world import Run
from compute_api_types import labels
from compute_cell_operator.planes import CELL
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at
from compute_sim_planes.oracles.invariants import join_violations
from compute_sim_planes.oracles.quota import QuotaRules, quota_safety

CORES: Final = {"1": 1000, "2": 2000}
MEMORY: Final = {"4Gi": 4096}


def size_of(instance: JsonObject) -> Mapping[str, int]:
    """By the one type and the few limits that these scenes use; anything else is a KeyError."""
    container = objects_at(instance, "spec", "runtime", "sandbox", "containers")[0]
    limits = object_at(container, "resources", "limits")
    if not limits:
        return ONE
    return {
        labels.INSTANCES_RESOURCE: 1,
        labels.VCPUS_RESOURCE: CORES[string_at(limits, "cpu")],
        labels.MEMORY_RESOURCE: MEMORY[string_at(limits, "memory")],
    }


def assert_quota_is_safe(done: Run, budget: Mapping[str, int] = BUDGET) -> None:
    rules = QuotaRules(cells={CELL: CELL_NAME}, size_of=size_of, granted_before={PROJECT: budget})
    violations = quota_safety(done.history, rules)
    assert not violations, join_violations(violations)
