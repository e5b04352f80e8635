"""Cache reads of the instance controller, its mapping functions and its metrics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compute_api_types import labels
from compute_cell_operator.indexes import OWNER, index_by_owner, keys_of_kind
from compute_cell_operator.instance import watches
from compute_cell_operator.instance.metrics import QuotaMetrics
from compute_cell_operator.instance.observe import InstanceContext, observe
from compute_cell_operator.instance.plan import plan
from compute_cell_operator.network.state import NetworkingState
from compute_cell_operator.planes import CELL, INSTANCE, NAMESPACE, NETWORK_BINDING
from compute_cell_operator.quota.observe import observe_slot
from compute_cell_operator.quota.project_ref import ProjectUnresolvable
from compute_cell_operator.quota.result import (
    ClaimGranted,
    ClaimState,
    Disabled,
    NoResult,
    QuotaResult,
    SizeUnknown,
)
from compute_operator_kit.cache.store import CachedObject, Change
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey, Role, Uid
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.intents.intents import RemoveGate
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome
from compute_operator_kit.testing.fakes import FakeCaches, FakeMetrics, a_snapshot, a_store

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")
NOW = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
OWNED: JsonObject = {
    "ownerReferences": [
        {
            "apiVersion": "compute.datumapis.com/v1alpha",
            "kind": "WorkloadDeployment",
            "name": "web",
            "uid": "d-1",
            "controller": True,
        }
    ]
}
IDENTITY: JsonObject = {
    "labels": {
        "meta.datumapis.com/upstream-cluster-name": "cluster-acme",
        "meta.datumapis.com/upstream-namespace": "shop",
    }
}
SPEC: JsonObject = {
    "runtime": {"resources": {"instanceType": "datumcloud/d1-standard-2"}},
    "controller": {"schedulingGates": [{"name": "Quota"}]},
}
REQUESTS = {
    "compute.datumapis.com/instances": 1,
    "compute.datumapis.com/vcpus": 1000,
    "compute.datumapis.com/memory": 2048,
}


class FakeResults:
    """Quota results with one entry."""

    def __init__(self, result: QuotaResult | None = None) -> None:
        self._result = result

    def result(self, instance: ObjectKey) -> QuotaResult | None:
        return self._result if instance == KEY else None

    def enqueue(self, instance: ObjectKey) -> None:
        raise AssertionError(f"observe enqueues {instance}")


def an_instance(spec: JsonObject = SPEC, status: JsonObject | None = None) -> Snapshot:
    return a_snapshot(KEY, OWNED, spec=spec, status=status or {})


def a_binding(reason: str = "NetworkFailedToCreate") -> Snapshot:
    ready: JsonObject = {"type": "Ready", "status": "False", "reason": reason, "message": "no"}
    key = ObjectKey(CELL, NETWORK_BINDING, NS, "web-net-0")
    return a_snapshot(key, OWNED, status={"conditions": [ready]})


def some_caches(
    instance: Snapshot | None = None,
    *,
    identity: JsonObject = IDENTITY,
    has_namespace: bool = True,
    has_bindings: bool = True,
) -> FakeCaches:
    namespace = a_snapshot(ObjectKey(CELL, NAMESPACE, "", NS), identity)
    owners = {OWNER: index_by_owner}
    instances = (instance or an_instance(),)
    return FakeCaches(
        [
            a_store(CELL, INSTANCE, instances, indexes=watches.INDEXES),
            a_store(CELL, NAMESPACE, (namespace,) if has_namespace else ()),
            a_store(CELL, NETWORK_BINDING, (a_binding(),), indexes=owners, is_synced=has_bindings),
        ],
        {CELL: Role.HOME},
    )


def around(
    result: QuotaResult | None = None,
    *,
    enforced: bool = True,
    networking: NetworkingState = NetworkingState.ON,
) -> InstanceContext:
    return InstanceContext(FakeResults(result), enforced, networking)


GRANTED = QuotaResult(Uid("uid-of-web-0"), REQUESTS, ClaimGranted("yours"))


@pytest.mark.spec("OU-03")
def test_an_instance_of_another_controller_is_left_alone() -> None:
    owner: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x-1"}
    metadata: JsonObject = {"ownerReferences": [{**owner, "controller": True}]}
    caches = some_caches(a_snapshot(KEY, metadata, spec=SPEC, status={}))
    assert observe(KEY, caches, around(GRANTED)) is None
    assert observe_slot(KEY, caches) is None


@pytest.mark.parametrize(
    ("caches", "surroundings", "state"),
    [
        (some_caches(), around(GRANTED), ClaimGranted("yours")),
        (some_caches(), around(), NoResult()),
        (some_caches(), around(GRANTED, enforced=False), Disabled()),
        (some_caches(an_instance(spec={})), around(GRANTED), SizeUnknown("")),
        (some_caches(has_namespace=False), around(), NoResult()),
        # A predecessor's grant, and that of another size, open nothing.
        (some_caches(), around(QuotaResult(Uid("old"), REQUESTS, ClaimGranted("x"))), NoResult()),
        (
            some_caches(),
            around(QuotaResult(Uid("uid-of-web-0"), {}, ClaimGranted("x"))),
            NoResult(),
        ),
    ],
)
def test_what_is_known_of_quota(
    caches: FakeCaches, surroundings: InstanceContext, state: ClaimState
) -> None:
    observed = observe(KEY, caches, surroundings)
    assert observed is not None
    assert observed.quota_result == state


def test_a_namespace_without_its_labels_is_unresolvable() -> None:
    observed = observe(KEY, some_caches(identity={}), around(GRANTED))
    assert observed is not None
    assert isinstance(observed.quota_result, ProjectUnresolvable)
    assert NS in observed.quota_result.detail


def test_an_absent_instance_is_nothing_to_look_at() -> None:
    other = ObjectKey(CELL, INSTANCE, NS, "web-1")
    assert observe(other, some_caches(), around()) is None


@pytest.mark.parametrize(
    ("networking", "has_bindings", "is_refused"),
    [
        (NetworkingState.ON, True, True),
        (NetworkingState.ON, False, False),
        (NetworkingState.OFF, True, False),
    ],
)
def test_a_refused_network_is_evidence_only_where_it_can_be_read(
    networking: NetworkingState, *, has_bindings: bool, is_refused: bool
) -> None:
    caches = some_caches(has_bindings=has_bindings)
    observed = observe(KEY, caches, around(networking=networking))
    assert observed is not None
    assert (observed.refusal is not None) is is_refused


# --- mapping --------------------------------------------------------------------------------------


def test_a_namespace_and_a_binding_enqueue_the_instances_they_concern() -> None:
    caches = some_caches()
    namespace = Change(None, CachedObject(a_snapshot(ObjectKey(CELL, NAMESPACE, "", NS))))
    assert list(watches.map_namespace(namespace, caches)) == [KEY]
    values = {OWNER: ("d-1",)}
    assert list(watches.map_binding(Change(CachedObject(a_binding(), values), None), caches)) == [
        KEY
    ]
    stranger = {OWNER: ("d-2",)}
    assert (
        list(watches.map_binding(Change(CachedObject(a_binding(), stranger), None), caches)) == []
    )
    assert list(keys_of_kind(caches, INSTANCE)) == [KEY]
    assert OWNER in watches.INDEXES


# --- what is counted ------------------------------------------------------------------------------


def _conditions(reason: str) -> JsonObject:
    return {"conditions": [{"type": "QuotaGranted", "status": "False", "reason": reason}]}


@pytest.mark.parametrize(
    ("spec", "reason", "counted"),
    [
        (SPEC, "QuotaExceeded", "QuotaExceeded"),
        (SPEC, "SomebodysOwnWord", "Unknown"),
        ({}, "QuotaExceeded", None),
    ],
)
def test_waiting_instances_are_counted_by_reasons_of_a_closed_set(
    spec: JsonObject, reason: str, counted: str | None
) -> None:
    measures = FakeMetrics()
    instance = an_instance(spec, _conditions(reason))
    QuotaMetrics(measures).update_gauges(some_caches(instance))
    gauges = {
        dict(labelled)["reason"]: value
        for (name, labelled), value in measures.gauges.items()
        if name == "compute_quota_waiting_instances"
    }
    assert {word for word, value in gauges.items() if value} == ({counted} if counted else set())
    assert gauges.keys() == watches.REASONS


def test_a_gate_that_goes_is_timed_from_birth_and_from_the_grant() -> None:
    measures = FakeMetrics()
    quota = QuotaMetrics(measures)
    quota.note_grant(KEY, timedelta(seconds=5))
    quota.note_grant(KEY, timedelta(seconds=6))
    seen = observe(KEY, some_caches(), around(GRANTED))
    assert seen is not None
    written = [Outcome(intent, Effect.WRITTEN) for intent in plan(seen, NOW)]
    quota.count(seen, Applied(tuple(written)), NOW, timedelta(seconds=7))
    assert measures.values[("compute_quota_wait_seconds", ())] == [30.0]
    assert measures.values[("compute_quota_grant_to_ungate_seconds", ())] == [2.0]
    assert quota.granted == {}


def test_the_removal_of_another_gate_ends_no_wait_for_quota() -> None:
    measures = FakeMetrics()
    quota = QuotaMetrics(measures)
    quota.note_grant(KEY, timedelta(seconds=5))
    seen = observe(KEY, some_caches(), around(GRANTED))
    assert seen is not None
    removal = RemoveGate(KEY, seen.instance.metadata.uid, labels.REFERENCED_DATA_GATE, "Ready")
    applied = Applied((Outcome(removal, Effect.WRITTEN),))
    quota.count(seen, applied, NOW, timedelta(seconds=7))
    assert measures.values == {}
    assert quota.granted == {KEY: timedelta(seconds=5)}


@pytest.mark.parametrize(("effect", "number"), [(Effect.NOTED, 1), (Effect.SKIPPED, 0)])
def test_a_failure_is_counted_when_its_transition_was_persisted(
    effect: Effect, number: int
) -> None:
    measures = FakeMetrics()
    seen = observe(KEY, some_caches(an_instance(spec={})), around())
    assert seen is not None
    outcomes = [Outcome(intent, effect) for intent in plan(seen, NOW)]
    QuotaMetrics(measures).count(seen, Applied(tuple(outcomes)), NOW, timedelta())
    name = "compute_quota_eval_failures_total"
    assert measures.total(name, reason="misconfigured") == number
