"""Which changes enqueue a slot, and by which project its reconciles are limited."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from compute_api_types.sizes import Size
from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.quota.observe import InstanceFacts
from compute_cell_operator.quota.plan import Postpone, Recreated
from compute_cell_operator.quota.project_ref import BillingProject, InstanceRef
from compute_cell_operator.quota.state import SlotTable
from compute_cell_operator.quota.watches import (
    QUOTA,
    QuotaWatches,
    index_by_quota,
    is_relevant_change,
    is_repeated,
)
from compute_operator_kit.cache.lister import CachedObject, Change
from compute_operator_kit.core.json import Json, JsonMapping
from compute_operator_kit.core.keys import ObjectKey, Role, Uid
from compute_operator_kit.core.objects import ReceivedObject, Snapshot
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store
from compute_quota_client import Absent, judge
from compute_quota_client.testing import a_found_claim

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")


def an_instance(
    version: str = "1",
    *,
    quota: str = "True",
    gates: tuple[str, ...] = (),
    metadata: JsonMapping | None = None,
    ready: str = "False",
) -> Snapshot:
    named: list[Json] = [{"name": gate} for gate in gates]
    conditions: list[Json] = [
        {"type": "QuotaGranted", "status": quota, "reason": "QuotaAvailable"},
        {"type": "Ready", "status": ready, "reason": "Pending"},
    ]
    return a_snapshot(
        KEY,
        {"resourceVersion": version, **(metadata or {})},
        spec={"controller": {"schedulingGates": named}},
        status={"conditions": conditions},
    )


def a_change(before: Snapshot, after: Snapshot) -> Change:
    store = a_store(CELL, INSTANCE, (before,), indexes={QUOTA: index_by_quota})
    change = store.put(ReceivedObject(after))
    assert change is not None
    return change


def test_a_status_of_the_provider_is_irrelevant_to_a_claim() -> None:
    assert not is_relevant_change(a_change(an_instance(), an_instance("2", ready="True")))
    finalizers: JsonMapping = {"finalizers": ["provider/finalizer"]}
    assert not is_relevant_change(a_change(an_instance(), an_instance("2", metadata=finalizers)))


def test_the_condition_of_an_instance_behind_its_gate_is_irrelevant() -> None:
    before = an_instance(quota="Unknown", gates=("Quota",))
    assert not is_relevant_change(a_change(before, an_instance("2", gates=("Quota",))))


@pytest.mark.parametrize(
    "after",
    [
        an_instance("2", quota="False"),
        an_instance("2", metadata={"generation": 2}),
        an_instance("2", metadata={"uid": "another"}),
        an_instance("2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ],
    ids=["verdict", "spec", "another", "going"],
)
def test_everything_that_a_reconcile_reads_is_relevant(after: Snapshot) -> None:
    assert is_relevant_change(a_change(an_instance(), after))


def test_an_instance_that_is_created_or_deleted_is_relevant() -> None:
    change = a_change(an_instance(), an_instance("2"))
    assert is_relevant_change(Change(None, change.after))
    assert is_relevant_change(Change(change.before, None))


def test_a_claim_that_is_written_again_and_not_decided_is_no_news() -> None:
    pending = a_found_claim(state="pending")
    before = judge(pending)
    again = replace(pending, resource_version="99", allocations=a_found_claim().allocations)
    assert is_repeated(before, before)
    assert is_repeated(before, judge(again))
    assert not is_repeated(None, before)
    assert not is_repeated(before, Absent())
    assert not is_repeated(before, judge(replace(again, uid="another")))
    assert not is_repeated(before, judge(replace(again, annotations={"a": "b"})))
    granted = judge(a_found_claim())
    assert not is_repeated(before, granted)
    assert is_repeated(granted, granted)
    assert not is_repeated(granted, judge(replace(a_found_claim(), resource_version="99")))


# --- mapping --------------------------------------------------------------------------------------

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMESPACE_KEY = ObjectKey(CELL, NAMESPACE, "", NS)
DEPLOYMENT_KEY = ObjectKey(CELL, DEPLOYMENT, NS, "web")
LABELS: JsonMapping = {
    "labels": {
        "meta.datumapis.com/upstream-cluster-name": "cluster-acme",
        "meta.datumapis.com/upstream-namespace": "shop",
    }
}


def some_caches(*namespaces: Snapshot) -> FakeCaches:
    return FakeCaches([a_store(CELL, NAMESPACE, namespaces)], {CELL: Role.HOME})


def a_deletion(key: ObjectKey, *, is_inferred: bool = False) -> Change:
    return Change(CachedObject(a_snapshot(key)), None, is_inferred=is_inferred)


def some_watches(slots: SlotTable, *, is_in_scope: bool = True) -> QuotaWatches:
    return QuotaWatches(slots, lambda _: is_in_scope)


@pytest.mark.parametrize("is_inferred", [True, False])
def test_a_deletion_that_was_seen_is_kept_apart_from_an_inferred_one(is_inferred: bool) -> None:
    slots = SlotTable(lambda _: None)
    change = a_deletion(KEY, is_inferred=is_inferred)
    assert tuple(some_watches(slots).map_instance(change, some_caches())) == (KEY,)
    assert slots.open(KEY).was_seen_deleted is not is_inferred


def test_an_instance_out_of_scope_is_dropped() -> None:
    slots = SlotTable(lambda _: None)
    watches = some_watches(slots, is_in_scope=False)
    assert tuple(watches.map_instance(a_deletion(KEY), some_caches())) == ()
    assert len(slots) == 0


def test_a_deployment_enqueues_its_slots_that_are_empty_or_wait() -> None:
    slots = SlotTable(lambda _: None)
    instance = InstanceFacts(
        ref=InstanceRef(NS, "web-0", Uid("u1")),
        size=Size(1000, 2048),
        is_started=True,
        is_terminating=False,
        had_claim=True,
        denied_since=None,
        owner=None,
    )
    slot = slots.open(KEY)
    watches, change = some_watches(slots), a_deletion(DEPLOYMENT_KEY)
    assert tuple(watches.map_deployment(change, some_caches())) == (KEY,)
    slot.occupy(instance, NOW)
    assert tuple(watches.map_deployment(change, some_caches())) == ()
    slot.postpone(Postpone(Recreated.LOST), instance.requests, NOW)
    assert tuple(watches.map_deployment(change, some_caches())) == (KEY,)


def test_a_namespace_enqueues_every_slot_in_it() -> None:
    slots = SlotTable(lambda _: None)
    slots.open(KEY)
    watches = some_watches(slots)
    assert tuple(watches.map_namespace(a_deletion(NAMESPACE_KEY), some_caches())) == (KEY,)
    other = ObjectKey(CELL, NAMESPACE, "", "other")
    assert tuple(watches.map_namespace(a_deletion(other), some_caches())) == ()


def test_slots_take_turns_by_project_also_after_their_namespace_is_gone() -> None:
    slots = SlotTable(lambda _: None)
    watches = some_watches(slots)
    assert (
        watches.derive_fairness_key(KEY, some_caches(a_snapshot(NAMESPACE_KEY, LABELS))) == "acme"
    )
    assert watches.derive_fairness_key(KEY, some_caches()) == NS
    slots.open(KEY).billing = BillingProject("acme", "shop", NS[3:])
    assert watches.derive_fairness_key(KEY, some_caches()) == "acme"
