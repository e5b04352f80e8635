"""What the instance pass reads from caches, whom a change wakes, and what is counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compute_cell_operator.deployment.observe import OWNER
from compute_cell_operator.instance import mapping
from compute_cell_operator.instance.measures import QuotaMeasures
from compute_cell_operator.instance.observe import Surroundings, observe
from compute_cell_operator.instance.plan import plan
from compute_cell_operator.kinds import INSTANCE, NAMESPACE, NETWORK_BINDING
from compute_cell_operator.network import observe as network
from compute_cell_operator.network.state import State
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.findings import (
    Disabled,
    Finding,
    Granted,
    Said,
    SizeUnknown,
    Undecided,
    Unresolvable,
)
from compute_cell_operator.quota_gate.occupancy import observe_slot
from compute_operator_kit.cache import Change, Entry
from compute_operator_kit.keys import ObjectKey, Role, Uid
from compute_operator_kit.objects import Snapshot
from compute_operator_kit.outcomes import Applied, Effect, Outcome
from compute_operator_kit.testing import FakeCaches, FakeMeasures, a_snapshot, a_store
from compute_operator_kit.wire import JsonObject

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


class FakeGate:
    """Has found this."""

    def __init__(self, finding: Finding | None = None) -> None:
        self._finding = finding

    def finding(self, instance: ObjectKey) -> Finding | None:
        return self._finding if instance == KEY else None

    def look(self, instance: ObjectKey) -> None:
        raise AssertionError(f"observing asks nobody about {instance}")


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
    owners = {network.OWNER: network.index_by_owner}
    instances = (instance or an_instance(),)
    return FakeCaches(
        [
            a_store(CELL, INSTANCE, instances, indexes=mapping.INDEXES),
            a_store(CELL, NAMESPACE, (namespace,) if has_namespace else ()),
            a_store(CELL, NETWORK_BINDING, (a_binding(),), indexes=owners, is_synced=has_bindings),
        ],
        {CELL: Role.HOME},
    )


def around(
    finding: Finding | None = None, *, enforced: bool = True, networking: State = State.ON
) -> Surroundings:
    return Surroundings(FakeGate(finding), enforced, networking)


GRANTED = Finding(Uid("uid-of-web-0"), REQUESTS, Granted("yours"))


@pytest.mark.spec("OU-03")
def test_an_instance_of_another_controller_is_left_alone() -> None:
    owner: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x-1"}
    metadata: JsonObject = {"ownerReferences": [{**owner, "controller": True}]}
    caches = some_caches(a_snapshot(KEY, metadata, spec=SPEC, status={}))
    assert observe(KEY, caches, around(GRANTED)) is None
    assert observe_slot(KEY, caches) is None


@pytest.mark.parametrize(
    ("caches", "surroundings", "said"),
    [
        (some_caches(), around(GRANTED), Granted("yours")),
        (some_caches(), around(), Undecided()),
        (some_caches(), around(GRANTED, enforced=False), Disabled()),
        (some_caches(an_instance(spec={})), around(GRANTED), SizeUnknown("")),
        (some_caches(has_namespace=False), around(), Undecided()),
        # A predecessor's grant, and that of another size, open nothing.
        (some_caches(), around(Finding(Uid("old"), REQUESTS, Granted("x"))), Undecided()),
        (some_caches(), around(Finding(Uid("uid-of-web-0"), {}, Granted("x"))), Undecided()),
    ],
)
def test_what_is_known_of_quota(caches: FakeCaches, surroundings: Surroundings, said: Said) -> None:
    found = observe(KEY, caches, surroundings)
    assert found is not None
    assert found.said == said


def test_a_namespace_without_its_labels_is_unresolvable() -> None:
    found = observe(KEY, some_caches(identity={}), around(GRANTED))
    assert found is not None
    assert isinstance(found.said, Unresolvable)
    assert NS in found.said.detail


def test_an_absent_instance_is_nothing_to_look_at() -> None:
    other = ObjectKey(CELL, INSTANCE, NS, "web-1")
    assert observe(other, some_caches(), around()) is None


@pytest.mark.parametrize(
    ("networking", "has_bindings", "is_refused"),
    [(State.ON, True, True), (State.ON, False, False), (State.OFF, True, False)],
)
def test_a_refused_network_is_evidence_only_where_it_can_be_read(
    networking: State, *, has_bindings: bool, is_refused: bool
) -> None:
    caches = some_caches(has_bindings=has_bindings)
    found = observe(KEY, caches, around(networking=networking))
    assert found is not None
    assert (found.refusal is not None) is is_refused


# --- whom a change concerns -----------------------------------------------------------------------


def test_a_namespace_and_a_binding_wake_the_instances_they_concern() -> None:
    caches = some_caches()
    namespace = Change(None, Entry(a_snapshot(ObjectKey(CELL, NAMESPACE, "", NS))))
    assert list(mapping.map_namespace(namespace, caches)) == [KEY]
    values = {network.OWNER: ("d-1",)}
    assert list(mapping.map_binding(Change(Entry(a_binding(), values), None), caches)) == [KEY]
    stranger = {network.OWNER: ("d-2",)}
    assert list(mapping.map_binding(Change(Entry(a_binding(), stranger), None), caches)) == []
    assert list(mapping.wake_all(caches)) == [KEY]
    assert OWNER in mapping.INDEXES


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
    measures = FakeMeasures()
    instance = an_instance(spec, _conditions(reason))
    QuotaMeasures(measures).report(some_caches(instance))
    found = {
        dict(labels)["reason"]: value
        for (name, labels), value in measures.gauges.items()
        if name == "compute_quota_waiting_instances"
    }
    assert {word for word, value in found.items() if value} == ({counted} if counted else set())
    assert found.keys() == mapping.REASONS


def test_a_gate_that_goes_is_timed_from_birth_and_from_the_grant() -> None:
    measures = FakeMeasures()
    quota = QuotaMeasures(measures)
    quota.note_grant(KEY, timedelta(seconds=5))
    quota.note_grant(KEY, timedelta(seconds=6))
    seen = observe(KEY, some_caches(), around(GRANTED))
    assert seen is not None
    written = [Outcome(intent, Effect.WRITTEN) for intent in plan(seen, NOW)]
    quota.count(seen, Applied(tuple(written)), NOW, timedelta(seconds=7))
    assert measures.values[("compute_quota_wait_seconds", ())] == [30.0]
    assert measures.values[("compute_quota_grant_to_ungate_seconds", ())] == [2.0]
    assert quota.granted == {}


@pytest.mark.parametrize(("effect", "number"), [(Effect.NOTED, 1), (Effect.SKIPPED, 0)])
def test_a_failure_is_counted_when_its_transition_was_persisted(
    effect: Effect, number: int
) -> None:
    measures = FakeMeasures()
    seen = observe(KEY, some_caches(an_instance(spec={})), around())
    assert seen is not None
    outcomes = [Outcome(intent, effect) for intent in plan(seen, NOW)]
    QuotaMeasures(measures).count(seen, Applied(tuple(outcomes)), NOW, timedelta())
    name = "compute_quota_eval_failures_total"
    assert measures.total(name, reason="misconfigured") == number
