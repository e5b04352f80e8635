"""A partial decoder that lacks a member would leave objects out of an index, unnoticed."""

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
from compute_management_operator.hub import indexes
from compute_management_operator.hub.decoders import DEPLOYMENT_DECODER, WORKLOAD_DECODER
from compute_management_operator.hub.federation.observe import read_deployment
from compute_management_operator.planes import DEPLOYMENT, WORKLOAD
from compute_management_operator.workload import watches
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey, PlaneName
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.core.partial_decoder import PartialDecoder
from compute_operator_kit.testing.fakes import a_snapshot

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
    indexes: Mapping[str, IndexFunction], snapshot: Snapshot, body: JsonObject
) -> dict[str, list[str]]:
    return {name: list(of(snapshot.metadata, body)) for name, of in indexes.items()}


@pytest.mark.parametrize(
    ("snapshot", "decoder", "indexes", "filled"),
    [
        (a_workload(), WORKLOAD_DECODER, watches.WORKLOAD_INDEXES, watches.WORKLOAD_INDEXES),
        (a_deployment(), DEPLOYMENT_DECODER, watches.DEPLOYMENT_INDEXES, ["workload"]),
        (a_deployment(), DEPLOYMENT_DECODER, indexes.PROJECT_DEPLOYMENTS, [indexes.CITY]),
        (a_deployment(), DEPLOYMENT_DECODER, indexes.HUB_DEPLOYMENTS, [indexes.CELLS]),
    ],
)
def test_a_partial_decoder_has_all_that_indexes_read(
    snapshot: Snapshot,
    decoder: PartialDecoder,
    indexes: Mapping[str, IndexFunction],
    filled: Iterable[str],
) -> None:
    values = values_of(indexes, snapshot, decoder.read(snapshot))
    assert values == values_of(indexes, snapshot, snapshot.decode())
    assert all(values[name] for name in filled)  # not equal because both are empty


def test_a_partial_decoder_leaves_out_the_template() -> None:
    assert "template" not in member_object(DEPLOYMENT_DECODER.read(a_deployment()), "spec")
    spec = member_object(WORKLOAD_DECODER.read(a_workload()), "spec")
    assert list(member_object(member_object(spec, "template"), "spec")) == ["networkInterfaces"]


def test_a_deployment_is_read_without_its_template() -> None:
    deployment, whole = read_deployment(a_deployment()), a_deployment().decode()
    assert (deployment.city_code, deployment.whole_spec) == ("DFW", None)
    assert deployment.status.stored.document == whole["status"]
    assert deployment.status.reporting_cells == ("a", "b")
    assert "template" in member_object(whole, "spec")
