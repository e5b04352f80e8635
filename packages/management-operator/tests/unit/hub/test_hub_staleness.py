"""What is reconciled first after a start, by the first lists."""

from __future__ import annotations

import pytest
from management_builders.filled_caches import ACME, DELETED, OURS, H, caches_of

from compute_api_types import conditions, labels
from compute_management_operator.hub.federation import staleness as federation
from compute_management_operator.hub.projection import staleness as projection
from compute_management_operator.hub.status_compare import comparable_status
from compute_management_operator.planes import DEPLOYMENT, HUB, INSTANCE, NAMESPACE, WORKLOAD
from compute_management_operator.workload import staleness as workload
from compute_management_operator.workload import watches
from compute_operator_kit.core.json import Json, JsonObject, JsonValue
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store

GOING: JsonObject = {"deletionTimestamp": DELETED}


# --- Workloads ------------------------------------------------------------------------------------

SHOP = ObjectKey(ACME, WORKLOAD, "default", "shop")
AT_REST: JsonObject = {"observedGeneration": 2, "deployments": 1}


def a_shop(metadata: JsonObject | None = None, status: JsonObject | None = None) -> Snapshot:
    header: dict[str, JsonValue] = {
        "uid": "uid-of-shop",
        "generation": 2,
        "finalizers": [labels.WORKLOAD_FINALIZER],
    }
    return a_snapshot(SHOP, header | (metadata or {}), status=AT_REST if status is None else status)


def shops(*workloads: Snapshot, deployments: int = 1) -> FakeCaches:
    owned = [
        a_snapshot(
            ObjectKey(ACME, DEPLOYMENT, "default", f"shop-{number}"),
            {"labels": {labels.WORKLOAD_UID: "uid-of-shop"}},
        )
        for number in range(deployments)
    ]
    stores = [
        a_store(ACME, WORKLOAD, workloads, indexes=watches.WORKLOAD_INDEXES),
        a_store(ACME, DEPLOYMENT, owned, indexes=watches.DEPLOYMENT_INDEXES),
    ]
    return FakeCaches(stores, {ACME: Role.PROJECT})


def test_workload_at_rest_is_not_behind_and_one_that_is_gone_is_not() -> None:
    assert not workload.is_out_of_date(SHOP, shops(a_shop()))
    assert not workload.is_out_of_date(SHOP, shops())


@pytest.mark.parametrize(
    ("snapshot", "deployments"),
    [
        (a_shop(GOING), 1),
        (a_shop({"finalizers": []}), 1),
        (a_shop({"generation": 3}), 1),
        (a_shop(status={}), 1),
        (a_shop(), 0),
        (a_shop(), 2),
    ],
)
def test_workload_is_behind_when_it_goes_was_edited_or_lacks_a_deployment(
    snapshot: Snapshot, deployments: int
) -> None:
    assert workload.is_out_of_date(SHOP, shops(snapshot, deployments=deployments))


# --- deployments ----------------------------------------------------------------------------------

WEB = ObjectKey(ACME, DEPLOYMENT, "default", "web")
COPY = ObjectKey(HUB, DEPLOYMENT, H, "web")


def a_condition(kind: str, message: str = "", **more: Json) -> JsonObject:
    return {"type": kind, "status": "True", "reason": "Fine", "message": message, **more}


def a_report(message: str = "", ready: int = 1) -> JsonObject:
    entries: list[Json] = [a_condition("Ready", message, observedGeneration=4)]
    return {"observedGeneration": 4, "readyReplicas": ready, "conditions": entries}


def a_web(metadata: JsonObject | None = None, status: JsonObject | None = None) -> Snapshot:
    header: dict[str, JsonValue] = {
        "generation": 2,
        "finalizers": [labels.FEDERATION_FINALIZER],
        "annotations": {labels.FEDERATION_NAMESPACE: H},
    }
    shown = a_report() | {"observedGeneration": 2}
    return a_snapshot(WEB, header | (metadata or {}), status=status or shown)


def a_copy(metadata: JsonObject | None = None, status: JsonObject | None = None) -> Snapshot:
    header: dict[str, JsonValue] = {
        "generation": 4,
        "labels": {**OURS},
        "annotations": {labels.PROJECT_GENERATION: "2"},
    }
    entries: list[Json] = [a_condition(conditions.CELLS_REPORTING, "dfw-1"), a_condition("Ready")]
    whole: JsonObject = {**a_report(), "conditions": entries, "observedTemplateGeneration": 1}
    return a_snapshot(COPY, header | (metadata or {}), status=whole if status is None else status)


def test_deployment_with_an_equal_copy_is_not_out_of_date() -> None:
    assert not federation.is_out_of_date(WEB, caches_of(a_web(), a_copy()))


def test_deployment_that_is_gone_is_behind_as_long_as_copies_name_it() -> None:
    assert federation.is_out_of_date(WEB, caches_of(a_copy()))
    assert not federation.is_out_of_date(WEB, caches_of())


@pytest.mark.parametrize(
    ("snapshot", "copy"),
    [
        (a_web(GOING), a_copy()),
        (a_web({"finalizers": []}), a_copy()),
        (a_web({"annotations": {}}), a_copy()),
        (a_web({"generation": 3}), a_copy()),
        (a_web(), None),
        (a_web(), a_copy(GOING)),
        (a_web(), a_copy({"annotations": {}})),
        (a_web(), a_copy({"generation": 5})),  # edited by another client
        (a_web(), a_copy(status=a_report(ready=0))),
        (a_web(), a_copy(status=a_report("another word"))),
    ],
)
def test_deployment_is_behind_when_it_or_its_copy_moved_on(
    snapshot: Snapshot, copy: Snapshot | None
) -> None:
    assert federation.is_out_of_date(WEB, caches_of(snapshot, *(() if copy is None else (copy,))))


# --- Instances ------------------------------------------------------------------------------------

SOURCE = ObjectKey(HUB, INSTANCE, H, "web-0")
SHOWN = ObjectKey(ACME, INSTANCE, "default", "web-0")
READY: JsonObject = {"conditions": [a_condition("Ready", observedGeneration=7)]}
ATTACHED: JsonObject = {**READY, "networkInterfaces": [{}]}


def a_source(metadata: JsonObject | None = None, status: JsonObject = READY) -> Snapshot:
    return a_snapshot(SOURCE, {"labels": {**OURS}, **(metadata or {})}, status=status)


def a_projection(metadata: JsonObject | None = None, status: JsonObject = READY) -> Snapshot:
    return a_snapshot(SHOWN, metadata, status=status)


def test_instance_that_is_shown_as_it_is_is_not_behind() -> None:
    shown: JsonObject = {"conditions": [a_condition("Ready")]}
    assert not projection.is_out_of_date(SOURCE, caches_of(a_source(), a_projection(status=shown)))


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (a_source(), None),
        (a_source(GOING), a_projection()),
        (a_source(), a_projection(GOING)),
        (a_source(status={"conditions": [a_condition("Ready", "restarted")]}), a_projection()),
        (a_source(status=ATTACHED), a_projection()),
    ],
)
def test_instance_is_behind_when_it_goes_or_is_shown_otherwise(
    source: Snapshot, shown: Snapshot | None
) -> None:
    caches = caches_of(source, *(() if shown is None else (shown,)))
    assert projection.is_out_of_date(SOURCE, caches)


def test_what_only_a_pass_can_tell_waits_for_its_turn() -> None:
    nameless = a_source({"labels": {}})
    assert not projection.is_out_of_date(SOURCE, caches_of(nameless))
    assert not projection.is_out_of_date(SOURCE, caches_of(a_projection()))
    assert not projection.is_out_of_date(SOURCE, caches_of(a_source(), projects=()))
    namespace = ObjectKey(PlaneName("acme"), NAMESPACE, "", "default")
    assert not projection.is_out_of_date(namespace, caches_of(a_projection()))


# --- statuses -------------------------------------------------------------------------------------


def test_generations_moments_and_order_make_no_difference_between_statuses() -> None:
    one: JsonObject = {
        "observedGeneration": 3,
        "conditions": [
            a_condition("Ready", lastTransitionTime="2026-01-01T00:00:00Z"),
            a_condition("Up"),
        ],
    }
    other: JsonObject = {"conditions": [a_condition("Up"), a_condition("Ready")]}
    assert comparable_status(one) == comparable_status(other)
    assert comparable_status(one, but="Up") != comparable_status(other)
    assert comparable_status({"conditions": "nonsense"}) == comparable_status({})
