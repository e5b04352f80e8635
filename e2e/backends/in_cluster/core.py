"""Which scenarios are played on pods without `--all`: each for what only pods can show.

Everything else has the same bodies and the same operators on `real`; what pods add (images,
manifests, mounts, tokens, probes, rollouts, the webhook behind its Service) is in these. Pure.
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
    }
)
SCENARIOS: Final = "scenarios"
# Scenarios about pods themselves are all of the core.
OF_PODS: Final = "test_pods.py"


def select(
    items: Sequence[pytest.Item], core: Container[str] = CORE
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Tests of the core and those that are no scenarios, and the others."""
    chosen = [item for item in items if is_chosen(item.path, item.name, core)]
    return chosen, [item for item in items if item not in chosen]


def covers(items: Sequence[pytest.Item], folder: Path) -> bool:
    """Whether something of every file of scenarios is played: only then what nobody used counts."""
    return {path.name for path in folder.glob("test_*.py")} <= {item.path.name for item in items}


def is_chosen(path: Path, name: str, core: Container[str] = CORE) -> bool:
    return path.parent.name != SCENARIOS or path.name == OF_PODS or name in core
