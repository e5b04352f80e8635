"""Cache reads of write-back, and its mapping functions."""

from __future__ import annotations

import pytest

from compute_cell_operator.indexes import OWNER
from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_cell_operator.write_back import watches
from compute_cell_operator.write_back.observe import (
    HubFacts,
    InstanceDocument,
    Kept,
    ObservedCopy,
    Vanished,
    observe,
    read_document,
)
from compute_cell_operator.write_back.plan import AskHub
from compute_cell_operator.write_back.reconcile import is_read_for
from compute_operator_kit.cache.store import CachedObject, Change
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")
COPY_KEY = ObjectKey(HUB, INSTANCE, NS, "web-0")
OWNED: JsonObject = {
    "ownerReferences": [
        {
            "apiVersion": DEPLOYMENT.api_version,
            "kind": DEPLOYMENT.kind,
            "name": "web",
            "uid": "uid-of-web",
            "controller": True,
        }
    ]
}
FROM_HUB: JsonObject = {"annotations": {"resourcetemplate.karmada.io/uid": "hub-d"}}


def some_caches(
    *,
    instances: tuple[Snapshot, ...] = (),
    copies: tuple[Snapshot, ...] = (),
    deployments: tuple[Snapshot, ...] = (),
    is_synced: bool = True,
) -> FakeCaches:
    indexes = watches.INSTANCE_INDEXES
    namespace = a_snapshot(ObjectKey(CELL, NAMESPACE, "", NS))
    return FakeCaches(
        [
            a_store(CELL, INSTANCE, instances, indexes=indexes, is_synced=is_synced),
            a_store(CELL, DEPLOYMENT, deployments),
            a_store(CELL, NAMESPACE, (namespace,)),
            a_store(HUB, INSTANCE, copies),
        ],
        {CELL: Role.HOME, HUB: Role.HUB},
    )


def a_deployment(uid: str = "uid-of-web") -> Snapshot:
    return a_snapshot(ObjectKey(CELL, DEPLOYMENT, NS, "web"), {**FROM_HUB, "uid": uid})


def seen_of(caches: FakeCaches, hub: HubFacts | None = None) -> ObservedCopy:
    observed = observe(KEY, caches, "dfw-1", kept=Kept(owner_misses=3), hub=hub)
    assert isinstance(observed, ObservedCopy)
    return observed


def test_the_hub_deployment_is_known_by_the_controller_and_not_by_a_label() -> None:
    instance = a_snapshot(KEY, OWNED)
    observed = seen_of(some_caches(instances=(instance,), deployments=(a_deployment(),)))
    assert observed.deployment_uid == "hub-d"
    assert observed.copy == Absent()
    assert observed.owner_misses == 3


@pytest.mark.parametrize("metadata", [OWNED, {}])
def test_a_deployment_of_another_uid_or_none_gives_no_owner(metadata: JsonObject) -> None:
    caches = some_caches(instances=(a_snapshot(KEY, metadata),), deployments=(a_deployment("x"),))
    assert seen_of(caches).deployment_uid == ""


def test_a_copy_that_no_cache_can_have_is_taken_from_the_answer() -> None:
    live = read_document(a_snapshot(COPY_KEY))
    header = Metadata("web", NS, live.metadata.uid, "1")
    answer = HubFacts(header, header, live)
    assert seen_of(some_caches(instances=(a_snapshot(KEY),)), answer).copy == live
    # What the cache has is newer than an answer.
    cached = a_snapshot(COPY_KEY, {"resourceVersion": "9"})
    observed = seen_of(some_caches(instances=(a_snapshot(KEY),), copies=(cached,)), answer)
    assert isinstance(observed.copy, InstanceDocument)
    assert observed.copy.metadata.resource_version == "9"


def test_an_instance_that_is_not_there_leaves_its_copy_to_be_judged() -> None:
    observed = observe(KEY, some_caches(copies=(a_snapshot(COPY_KEY),)), "dfw-1")
    assert isinstance(observed, Vanished)
    assert isinstance(observed.copy, InstanceDocument)
    assert observe(KEY, some_caches(), "dfw-1") == Vanished(Absent())


def test_an_incomplete_cache_of_the_cell_gives_no_observation() -> None:
    assert observe(KEY, some_caches(is_synced=False), "dfw-1") is None


@pytest.mark.parametrize(
    ("is_create", "label", "has_copy", "is_for_it"),
    [
        (True, "web", False, True),
        (True, "web", True, True),
        (False, "web", True, True),
        (False, "web", False, False),  # gone meanwhile: a create needs a fresh answer
        (True, "other", False, False),  # another owner now
    ],
)
def test_an_answer_counts_only_for_what_it_was_asked_for(
    *, is_create: bool, label: str, has_copy: bool, is_for_it: bool
) -> None:
    def with_label(name: str, copies: tuple[Snapshot, ...]) -> ObservedCopy:
        metadata: JsonObject = {"labels": {"compute.datumapis.com/workload-deployment-name": name}}
        return seen_of(some_caches(instances=(a_snapshot(KEY, metadata),), copies=copies))

    copies = (a_snapshot(COPY_KEY),)
    before = with_label("web", copies)
    after = with_label(label, copies if has_copy else ())
    assert is_read_for(after, before, AskHub(is_create=is_create)) is is_for_it


# --- mapping --------------------------------------------------------------------------------------


def test_a_copy_enqueues_its_name_and_a_deployment_or_namespace_its_instances() -> None:
    caches = some_caches(instances=(a_snapshot(KEY, OWNED),))
    copy = Change(None, CachedObject(a_snapshot(COPY_KEY)))
    assert list(watches.map_copy(copy, caches)) == [KEY]
    deployment = Change(CachedObject(a_deployment()), None)
    assert list(watches.map_deployment(deployment, caches)) == [KEY]
    stranger = Change(None, CachedObject(a_deployment("another")))
    assert list(watches.map_deployment(stranger, caches)) == []
    namespace = Change(None, CachedObject(a_snapshot(ObjectKey(CELL, NAMESPACE, "", NS))))
    assert list(watches.map_namespace(namespace, caches)) == [KEY]
    assert OWNER in watches.INSTANCE_INDEXES


def test_a_deployment_with_the_same_hub_owner_enqueues_no_instance() -> None:
    caches = some_caches(instances=(a_snapshot(KEY, OWNED),))
    web = ObjectKey(CELL, DEPLOYMENT, NS, "web")
    before = CachedObject(a_snapshot(web, {**FROM_HUB, "resourceVersion": "1"}))
    status = CachedObject(
        a_snapshot(web, {**FROM_HUB, "resourceVersion": "2"}, status={"replicas": 1})
    )
    assert list(watches.map_deployment(Change(before, status), caches)) == []
    moved: JsonObject = {"annotations": {"resourcetemplate.karmada.io/uid": "hub-e"}}
    after = CachedObject(a_snapshot(web, moved))
    assert list(watches.map_deployment(Change(before, after), caches)) == [KEY]
