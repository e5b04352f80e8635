"""An outline that lacks a member would leave objects out of an index, unseen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from management_builders.documents import (
    a_condition_document,
    a_deployment_document,
    a_deployment_status,
    a_workload_document,
)

from compute_api_types import conditions
from compute_management_operator import hub_indexes
from compute_management_operator.federation.observe import read_deployment
from compute_management_operator.kinds import DEPLOYMENT, WORKLOAD
from compute_management_operator.outlines import DEPLOYMENT_OUTLINE, WORKLOAD_OUTLINE
from compute_management_operator.workload import mapping
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.keys import ObjectKey, PlaneName
from compute_operator_kit.objects import Snapshot
from compute_operator_kit.outline import Outline
from compute_operator_kit.testing import a_snapshot
from compute_operator_kit.wire import JsonObject, member_object

ACME = PlaneName("acme")


def a_workload() -> Snapshot:
    document = a_workload_document(placements={"us": ("DFW", "ORD"), "eu": ("AMS",)})
    key = ObjectKey(ACME, WORKLOAD, "default", "web")
    return a_snapshot(key, spec=member_object(document, "spec"))


def a_deployment() -> Snapshot:
    reporting = a_condition_document(conditions.CELLS_REPORTING, "True", "AllCellsReport", "a,b")
    document = a_deployment_document(workload_uid="uid-of-web")
    key = ObjectKey(ACME, DEPLOYMENT, "default", "web-us-dfw")
    return a_snapshot(
        key, spec=member_object(document, "spec"), status=a_deployment_status(reporting)
    )


def values_of(
    indexes: Mapping[str, IndexFunction], found: Snapshot, body: JsonObject
) -> dict[str, list[str]]:
    return {name: list(of(found.metadata, body)) for name, of in indexes.items()}


@pytest.mark.parametrize(
    ("found", "outline", "indexes", "telling"),
    [
        (a_workload(), WORKLOAD_OUTLINE, mapping.WORKLOAD_INDEXES, mapping.WORKLOAD_INDEXES),
        (a_deployment(), DEPLOYMENT_OUTLINE, mapping.DEPLOYMENT_INDEXES, ["workload"]),
        (a_deployment(), DEPLOYMENT_OUTLINE, hub_indexes.PROJECT_DEPLOYMENTS, [hub_indexes.CITY]),
        (a_deployment(), DEPLOYMENT_OUTLINE, hub_indexes.HUB_DEPLOYMENTS, [hub_indexes.CELLS]),
    ],
)
def test_an_outline_has_all_that_indexes_look_at(
    found: Snapshot,
    outline: Outline,
    indexes: Mapping[str, IndexFunction],
    telling: Iterable[str],
) -> None:
    values = values_of(indexes, found, outline.read(found))
    assert values == values_of(indexes, found, found.decode())
    assert all(values[name] for name in telling)  # equal because there is something to find


def test_an_outline_has_no_template_of_any_size() -> None:
    assert "template" not in member_object(DEPLOYMENT_OUTLINE.read(a_deployment()), "spec")
    spec = member_object(WORKLOAD_OUTLINE.read(a_workload()), "spec")
    assert list(member_object(member_object(spec, "template"), "spec")) == ["networkInterfaces"]


def test_a_deployment_is_read_without_its_template() -> None:
    found, whole = read_deployment(a_deployment()), a_deployment().decode()
    assert found.city_code == "DFW"
    assert found.status == whole["status"]
    spec = member_object(whole, "spec")
    assert "template" in spec
    assert found.spec == {name: value for name, value in spec.items() if name != "template"}
