"""Changes of an Instance that enqueue its deployment, and the cache of template hashes."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from compute_api_types.template_hash import HashVerdict, derive_template_hash
from compute_cell_operator.deployment import instance_digest, watches
from compute_cell_operator.deployment.revisions import MOST_ENTRIES, Revisions
from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE
from compute_operator_kit.cache.store import Change
from compute_operator_kit.core.json import JsonMapping, JsonObject
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.core.objects import ReceivedObject, Snapshot
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
WEB = ObjectKey(CELL, DEPLOYMENT, NS, "web")
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")
OWNERS: list[JsonObject] = [
    {"kind": DEPLOYMENT.kind, "name": "web", "uid": "uid-of-web", "controller": True}
]


def condition(kind: str, status: str = "True", message: str = "") -> JsonObject:
    return {"type": kind, "status": status, "reason": "Because", "message": message}


def an_instance(
    version: str = "1",
    *,
    metadata: JsonMapping | None = None,
    spec: JsonMapping | None = None,
    status: JsonMapping | None = None,
) -> Snapshot:
    controller: JsonObject = {"templateHash": "v1-a", "schedulingGates": [{"name": "Quota"}]}
    return a_snapshot(
        KEY,
        {"resourceVersion": version, "ownerReferences": OWNERS, **(metadata or {})},
        spec={"controller": controller, **(spec or {})},
        status={"conditions": [condition("Ready", "False")], **(status or {})},
    )


def change_to(after: Snapshot) -> tuple[Change, FakeCaches]:
    instances = a_store(CELL, INSTANCE, (an_instance(),), indexes=watches.INSTANCE_INDEXES)
    deployments = a_store(CELL, DEPLOYMENT, (a_snapshot(WEB),), indexes=watches.DEPLOYMENT_INDEXES)
    caches = FakeCaches([instances, deployments], {CELL: Role.HOME})
    change = instances.put(ReceivedObject(after))
    assert change is not None
    return change, caches


@pytest.mark.parametrize(
    "after",
    [
        an_instance("2", metadata={"finalizers": ["provider/finalizer"]}),
        an_instance("2", metadata={"generation": 9}),
        an_instance("2", status={"networkInterfaces": [{"ip": "10.0.0.1"}]}),
        an_instance(
            "2", status={"conditions": [condition("Ready", "False"), condition("Available")]}
        ),
    ],
    ids=["finalizer", "generation", "address", "available"],
)
def test_a_field_that_a_deployment_does_not_read_enqueues_nothing(after: Snapshot) -> None:
    change, caches = change_to(after)
    assert list(watches.map_instance(change, caches)) == []


@pytest.mark.parametrize(
    "after",
    [
        an_instance("2", metadata={"labels": {labels.INSTANCE_INDEX: "7"}}),
        an_instance("2", metadata={"annotations": {"a": "b"}}),
        an_instance("2", metadata={"ownerReferences": []}),
        an_instance("2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        an_instance("2", metadata={"uid": "another"}),
        an_instance("2", spec={"controller": {"templateHash": "v1-b"}}),
        an_instance("2", spec={"controller": {"templateHash": "v1-a", "schedulingGates": []}}),
        an_instance("2", spec={"location": {"name": "dfw"}}),
        an_instance("2", spec={"networkInterfaces": [{}]}),
        an_instance("2", status={"controller": {"observedTemplateHash": "v1-a"}}),
        an_instance("2", status={"conditions": [condition("Ready")]}),
        an_instance("2", status={"conditions": [condition("Ready", "False", "crashes")]}),
        *(
            an_instance("2", status={"conditions": [condition("Ready", "False"), condition(kind)]})
            for kind in sorted(instance_digest.CONDITIONS - {"Ready"})
        ),
    ],
)
def test_each_field_that_a_deployment_reads_of_its_instance_enqueues_it_once(
    after: Snapshot,
) -> None:
    change, caches = change_to(after)
    assert list(watches.map_instance(change, caches)) == [WEB]


def test_an_instance_that_is_created_or_deleted_enqueues_its_deployment() -> None:
    change, caches = change_to(an_instance("2"))
    assert change.before is not None
    for one in (Change(None, change.after), Change(change.before, None)):
        assert list(watches.map_instance(one, caches)) == [WEB]


def test_a_template_is_hashed_once_however_often_it_is_read() -> None:
    revisions = Revisions()
    first, again = revisions.read({"spec": {"a": 1}}), revisions.read({"spec": {"a": 1}})
    assert first.hash == derive_template_hash({"spec": {"a": 1}})
    assert again.hash is first.hash
    assert revisions.read({"spec": {"a": 2}}).hash == derive_template_hash({"spec": {"a": 2}})


def test_a_comparison_is_cached_by_the_content_of_the_template() -> None:
    revisions = Revisions()
    recorded = derive_template_hash({"spec": {"a": 1}})
    assert revisions.read({"spec": {"a": 1}}).compare(recorded) is HashVerdict.CURRENT
    assert len(revisions) == 1
    for _ in range(2):
        assert revisions.read({"spec": {"a": 2}}).compare(recorded) is HashVerdict.STALE
    assert len(revisions) == 3
    compare = revisions.read({"spec": {"a": 1}}).compare
    assert compare("v1-0000000000000000") is HashVerdict.STALE
    assert compare("") is HashVerdict.STALE
    assert compare("v9-x") is HashVerdict.NOT_JUDGED


def test_no_more_comparisons_are_cached_than_a_cell_needs() -> None:
    revisions = Revisions()
    compare = revisions.read({}).compare
    for number in range(MOST_ENTRIES + 10):
        compare(f"v1-{number}")
    assert len(revisions) == 1 + MOST_ENTRIES
