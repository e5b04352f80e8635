"""Cache reads of referenced data, and which keys a change enqueues (referenced-data.md 6)."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from compute_api_types.referenced_data.annotations import render_expected
from compute_api_types.template_hash import derive_template_hash
from compute_cell_operator.indexes import OWNER, index_by_owner
from compute_cell_operator.planes import CELL, CONFIG_MAP, DEPLOYMENT, INSTANCE, SECRET
from compute_cell_operator.referenced_data import watches
from compute_cell_operator.referenced_data.judgement import UNREAD, DataMode, DataVerdict
from compute_cell_operator.referenced_data.observe import observe_data, observe_data_of
from compute_operator_kit.cache.store import CachedObject, Change
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.keys import Kind, ObjectKey, Role
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
TEMPLATE: JsonObject = {
    "spec": {"runtime": {"sandbox": {"imagePullSecrets": [{"name": "pull"}], "containers": []}}}
}
EXPECTED: JsonObject = {
    "annotations": {labels.EXPECTED_REFERENCED_DATA: render_expected(["Secret/pull"])}
}
LABELLED: JsonObject = {"labels": {labels.REFERENCED_DATA: "true"}}


def a_key(kind: Kind, name: str) -> ObjectKey:
    return ObjectKey(CELL, kind, NS, name)


def a_deployment(template: JsonObject = TEMPLATE, metadata: JsonObject = EXPECTED) -> Snapshot:
    identity: JsonObject = {"uid": "d-1", **metadata}
    return a_snapshot(a_key(DEPLOYMENT, "web"), metadata=identity, spec={"template": template})


def a_secret(metadata: JsonObject = LABELLED) -> Snapshot:
    return a_snapshot(a_key(SECRET, "pull"), metadata=metadata)


def an_instance(
    recorded: str = "",
    gate: str = labels.REFERENCED_DATA_GATE,
    owner: str = "WorkloadDeployment",
    uid: str = "d-1",
    **annotations: Json,
) -> Snapshot:
    metadata: JsonObject = {
        "annotations": annotations,
        "ownerReferences": [
            {
                "apiVersion": "compute.datumapis.com/v1alpha",
                "kind": owner,
                "name": "web",
                "uid": uid,
                "controller": True,
            }
        ],
    }
    controller: JsonObject = {
        "templateHash": recorded or derive_template_hash(TEMPLATE),
        "schedulingGates": [{"name": gate}],
    }
    spec: JsonObject = {"controller": controller}
    return a_snapshot(a_key(INSTANCE, "web-0"), metadata=metadata, spec=spec)


def caches(
    *secrets: Snapshot, is_synced: bool = True, instance: Snapshot | None = None
) -> FakeCaches:
    stores = [
        a_store(CELL, CONFIG_MAP),
        a_store(
            CELL,
            DEPLOYMENT,
            [a_deployment()],
            indexes={watches.REFERENCE: watches.index_by_reference},
        ),
        a_store(
            CELL,
            INSTANCE,
            [instance] if instance is not None else [],
            indexes={OWNER: index_by_owner},
        ),
    ]
    if is_synced:
        stores.append(a_store(CELL, SECRET, secrets))
    return FakeCaches(stores, {CELL: Role.HOME})


def judge(*secrets: Snapshot, mode: DataMode = DataMode.COPIES) -> DataVerdict | None:
    return observe_data(a_deployment().metadata, TEMPLATE, CELL, caches(*secrets), mode)


def is_complete(*secrets: Snapshot, mode: DataMode = DataMode.COPIES) -> bool:
    verdict = judge(*secrets, mode=mode)
    assert verdict is not None
    return verdict.is_complete


def test_nothing_is_judged_without_references_or_while_it_is_off() -> None:
    assert judge(a_secret(), mode=DataMode.OFF) is None
    metadata = a_deployment().metadata
    assert observe_data(metadata, {"spec": {}}, CELL, caches(), DataMode.COPIES) is None


def test_only_a_live_copy_with_our_label_counts() -> None:
    assert is_complete(a_secret())
    assert not is_complete()
    assert not is_complete(a_secret({}))
    assert not is_complete(a_secret({**LABELLED, "deletionTimestamp": "2026-06-20T08:00:00Z"}))


@pytest.mark.spec("RD-24")
def test_in_a_single_cluster_any_object_of_that_name_counts() -> None:
    assert is_complete(a_secret({}), mode=DataMode.SOURCES)
    assert not is_complete(mode=DataMode.SOURCES)


def test_a_cache_that_is_incomplete_shows_no_object_as_missing() -> None:
    unread = caches(is_synced=False)
    metadata = a_deployment().metadata
    assert observe_data(metadata, TEMPLATE, CELL, unread, DataMode.COPIES) is UNREAD


def judge_instance(instance: Snapshot, mode: DataMode = DataMode.COPIES) -> DataVerdict | None:
    return observe_data_of(instance, instance.decode(), caches(a_secret()), mode)


def test_an_instance_behind_the_gate_is_judged_by_its_deployment() -> None:
    verdict = judge_instance(an_instance())
    assert verdict is not None
    assert verdict.is_complete
    adopted = {labels.ADOPTED_TEMPLATE_HASH: derive_template_hash(TEMPLATE)}
    assert judge_instance(an_instance("of-another-operator", **adopted)) == verdict


@pytest.mark.parametrize(
    "instance",
    [
        an_instance(gate="Quota"),
        an_instance(owner="ReplicaSet"),
        an_instance(uid="d-0"),
        an_instance("of-another-operator"),
        an_instance(
            derive_template_hash({"spec": {"volumes": []}, "metadata": {"labels": {"a": "b"}}})
        ),
    ],
)
def test_no_other_instance_is_judged(instance: Snapshot) -> None:
    assert judge_instance(instance) is None


def test_no_instance_is_judged_while_it_is_off() -> None:
    assert judge_instance(an_instance(), DataMode.OFF) is None


# --- watches --------------------------------------------------------------------------------------


def a_change(before: Snapshot | None, after: Snapshot | None) -> Change:
    def cached(one: Snapshot | None) -> CachedObject | None:
        if one is None:
            return None
        values = {watches.REFERENCE: tuple(watches.index_by_reference(one.metadata, one.decode()))}
        return CachedObject(one, values)

    return Change(cached(before), cached(after))


def test_a_copy_enqueues_the_deployments_that_name_it_and_their_instances() -> None:
    change = a_change(None, a_secret())
    world = caches(instance=an_instance())
    assert [key.name for key in watches.map_to_deployments(change, world)] == ["web"]
    assert [key.name for key in watches.map_to_instances(change, world)] == ["web-0"]
    other = a_change(None, a_snapshot(a_key(CONFIG_MAP, "pull")))
    assert list(watches.map_to_deployments(other, world)) == []


def test_what_a_deployment_expects_enqueues_its_instances() -> None:
    world = caches(instance=an_instance())
    unexpected = a_deployment(metadata={})
    assert [key.name for key in watches.map_deployment(a_change(None, a_deployment()), world)] == [
        "web-0"
    ]
    changed = a_change(unexpected, a_deployment())
    assert [key.name for key in watches.map_deployment(changed, world)] == ["web-0"]
    assert list(watches.map_deployment(a_change(a_deployment(), a_deployment()), world)) == []
    assert list(watches.map_deployment(a_change(a_deployment(), None), world)) == []
    unnamed = a_change(None, a_deployment(template={"spec": {}}))
    assert list(watches.map_deployment(unnamed, world)) == []


def test_copies_are_selected_by_label_and_sources_are_all() -> None:
    assert watches.cached_kinds(DataMode.OFF) == ()
    copies = watches.cached_kinds(DataMode.COPIES)
    assert {one.kind for one in copies} == {CONFIG_MAP, SECRET}
    assert {one.selector.labels for one in copies} == {"compute.datumapis.com/referenced-data=true"}
    assert {one.selector.labels for one in watches.cached_kinds(DataMode.SOURCES)} == {""}
    assert all(one.kind.is_metadata_only for one in copies)
