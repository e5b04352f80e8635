"""The scenarios that run on pods without `--all`: those that cover what only pods show.

That is images, manifests, mounts, tokens, probes, rollouts and the webhook behind its Service. The
other scenarios run the same code on `real`. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import Final

import pytest

CORE: Final = frozenset(
    {
        "test_a_deployment_reaches_the_hub_with_its_policy",  # E-01
        "test_a_deleted_deployment_leaves_nothing_behind",  # E-02
        "test_a_workload_runs_in_its_city",  # E-06
        "test_one_workload_runs_in_two_cities_and_leaves_one",  # E-08
        "test_a_whole_life_meets_no_refusal",  # E-42
        "test_invalid_workloads_are_refused_and_valid_ones_admitted",  # E-44
        "test_a_workload_lives_its_life_on_one_plain_cluster",  # E-45
        "test_containers_answer_in_two_cities_and_a_deletion_leaves_none",  # E-P01
        "test_a_wrong_image_is_reported_and_the_right_one_runs",  # E-P02
    }
)
SCENARIOS: Final = "scenarios"
# All scenarios about pods belong to the core.
OF_PODS: Final = "test_pods.py"


def select(
    items: Sequence[pytest.Item], core: Container[str] = CORE
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Tests of the core with those that are not scenarios, and the other tests."""
    chosen = [item for item in items if is_chosen(item.path, item.name, core)]
    return chosen, [item for item in items if item not in chosen]


def covers(items: Sequence[pytest.Item], folder: Path) -> bool:
    """Whether a test of every scenario file runs; only then are unused rights a fault."""
    return {path.name for path in folder.glob("test_*.py")} <= {item.path.name for item in items}


def is_chosen(path: Path, name: str, core: Container[str] = CORE) -> bool:
    return path.parent.name != SCENARIOS or path.name == OF_PODS or name in core
