from __future__ import annotations

from pathlib import Path

import pytest

from e2e.backends.pods.backend import PodBackend
from e2e.backends.pods.core import CORE, OF_PODS, covers, is_chosen
from e2e.backends.pods.report import (
    OBJECTS_OF_OTHERS,
    RIGHTS_OF_TROUBLE,
    ShippedObject,
    UnusedReport,
    describe_object,
    find_unused_rights,
    shipped_objects,
)
from e2e.backends.real.backend import RealBackend
from e2e.harness.deploy.rights import granted_rights
from e2e.world.port import HasPods

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def test_every_scenario_of_the_core_is_there() -> None:
    text = "".join(path.read_text("utf-8") for path in SCENARIOS.glob("test_*.py"))
    assert [name for name in sorted(CORE) if f"async def {name}(" not in text] == []
    assert (SCENARIOS / OF_PODS).exists()


@pytest.mark.parametrize(
    ("path", "name", "wanted"),
    [
        ("e2e/scenarios/test_full_chain.py", "test_a_workload_runs_in_its_city", True),
        ("e2e/scenarios/test_pods.py", "test_anything", True),
        ("e2e/scenarios/test_quota.py", "test_an_instance_waits_for_a_late_grant", False),
        ("e2e/harness/node/tests/cluster/test_node_life.py", "test_anything", True),
    ],
)
def test_the_core_is_chosen_and_what_is_no_scenario_stays(
    path: str, name: str, wanted: bool
) -> None:
    assert is_chosen(Path(path), name) is wanted


def test_templates_of_cells_are_no_objects_that_ship() -> None:
    names = {one.name for one in shipped_objects()}
    assert "compute-cell-operator:example" not in names
    assert (
        ShippedObject("Deployment", "compute-system", "compute-cell-operator") in shipped_objects()
    )


def test_what_components_bring_is_listed_too() -> None:
    kinds = {one.kind for one in shipped_objects()}
    assert {"NetworkPolicy", "PodDisruptionBudget", "ServiceMonitor", "PrometheusRule"} <= kinds


def test_rights_that_no_request_needed_are_listed() -> None:
    unused = find_unused_rights([], ["dfw-1"])
    assert len(unused) == len(granted_rights())
    assert (
        "2 objects of deploy/ are on no plane" in UnusedReport(("a", "b"), tuple(unused)).describe()
    )


def test_objects_of_others_are_reported_with_a_reason_and_are_no_fault() -> None:
    use = UnusedReport(tuple(OBJECTS_OF_OTHERS), tuple(RIGHTS_OF_TROUBLE))
    assert use.find_faults() == []
    description = "\n".join(use.describe())
    assert all(reason in description for reason in OBJECTS_OF_OTHERS.values())


def test_anything_else_that_a_whole_run_left_unused_is_a_fault() -> None:
    right = "compute-cell-operator (cell): delete instances.compute.datumapis.com"
    use = UnusedReport(("Secret compute-system/forgotten",), (right, *RIGHTS_OF_TROUBLE))
    assert use.find_faults() == [
        "deploy/: no scenario exercised Secret compute-system/forgotten",
        f"deploy/: no scenario exercised {right}",
    ]


def test_every_exception_is_of_something_that_ships() -> None:
    assert {str(right) for right in granted_rights()} >= set(RIGHTS_OF_TROUBLE)
    assert {describe_object(one) for one in shipped_objects()} >= set(OBJECTS_OF_OTHERS)


def test_only_a_run_over_every_file_of_scenarios_is_whole(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / request.path.name).touch()
    assert covers([request.node], tmp_path)
    (tmp_path / "test_another.py").touch()
    assert not covers([request.node], tmp_path)


def test_only_backends_with_pods_offer_what_befalls_pods() -> None:
    assert issubclass(PodBackend, HasPods)
    assert not issubclass(RealBackend, HasPods)
