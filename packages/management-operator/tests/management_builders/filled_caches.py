"""Caches of a hub and of projects, filled by hand, with the indexes the operator has on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from compute_api_types import labels
from compute_management_operator.hub import indexes
from compute_management_operator.planes import (
    CLUSTER,
    DEPLOYMENT,
    HUB,
    INSTANCE,
    NAMESPACE,
    POLICY,
    PROJECT,
    ROOT,
)
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.store import CachedObject, Change, Store
from compute_operator_kit.core.json import JsonObject, JsonValue
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store

INDEXES: Final[Mapping[tuple[Role, Kind], Mapping[str, IndexFunction]]] = {
    (Role.PROJECT, DEPLOYMENT): indexes.PROJECT_DEPLOYMENTS,
    (Role.PROJECT, INSTANCE): indexes.PROJECT_INSTANCES,
    (Role.HUB, NAMESPACE): indexes.HUB_NAMESPACES,
    (Role.HUB, DEPLOYMENT): indexes.HUB_DEPLOYMENTS,
    (Role.HUB, POLICY): indexes.HUB_POLICIES,
    (Role.HUB, CLUSTER): indexes.HUB_CLUSTERS,
    (Role.HUB, INSTANCE): indexes.HUB_INSTANCES,
    (Role.ROOT, PROJECT): {},
}
UID: Final = "0b9f6a52-55a1-4c0e-8d0f-2f6f3a1c7e44"
H: Final = f"ns-{UID}"
ACME: Final = PlaneName("acme")
OURS: Final[Mapping[str, str]] = {
    labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
    labels.UPSTREAM_NAMESPACE: "default",
}
DELETED: Final = "2026-06-20T08:00:00Z"


def _made(
    key: ObjectKey,
    with_labels: Mapping[str, str],
    annotations: Mapping[str, str],
    *,
    is_deleting: bool = False,
    **members: JsonObject,
) -> Snapshot:
    metadata: dict[str, JsonValue] = {"labels": {**with_labels}, "annotations": {**annotations}}
    if is_deleting:
        metadata["deletionTimestamp"] = DELETED
    return a_snapshot(key, metadata, **members)


def a_project_deployment(
    name: str = "web", city: str = "DFW", *, recorded: str = H, is_deleting: bool = False
) -> Snapshot:
    key = ObjectKey(ACME, DEPLOYMENT, "default", name)
    noted = {labels.FEDERATION_NAMESPACE: recorded} if recorded else {}
    return _made(key, {}, noted, is_deleting=is_deleting, spec={"cityCode": city})


def a_hub_deployment(
    name: str = "web",
    city: str = "DFW",
    *,
    with_labels: Mapping[str, str] = OURS,
    namespace: str = H,
    is_deleting: bool = False,
    status: JsonObject | None = None,
) -> Snapshot:
    key = ObjectKey(HUB, DEPLOYMENT, namespace, name)
    routed = {labels.TOPOLOGY_CITY_CODE: city, **with_labels}
    return _made(
        key,
        routed,
        {},
        is_deleting=is_deleting,
        spec={"cityCode": city},
        status=status or {},
    )


def a_hub_namespace(with_labels: Mapping[str, str] = OURS, name: str = H) -> Snapshot:
    return _made(ObjectKey(HUB, NAMESPACE, "", name), with_labels, {})


def a_hub_policy(
    code: str = "DFW", name: str = "city-dfw", *, namespace: str = H, is_deleting: bool = False
) -> Snapshot:
    selector: JsonObject = {"labelSelector": {"matchLabels": {labels.TOPOLOGY_CITY_CODE: code}}}
    key = ObjectKey(HUB, POLICY, namespace, name)
    spec: JsonObject = {"resourceSelectors": [selector]}
    return _made(key, {}, {}, is_deleting=is_deleting, spec=spec)


def a_hub_cluster(name: str = "dfw-1", city: str = "DFW") -> Snapshot:
    carried = {labels.TOPOLOGY_CITY_CODE: city} if city else {}
    return _made(ObjectKey(HUB, CLUSTER, "", name), carried, {})


def a_hub_instance(name: str = "web-0", with_labels: Mapping[str, str] | None = None) -> Snapshot:
    linked = {**OURS, labels.WORKLOAD_DEPLOYMENT_NAME: "web", labels.CELL: "dfw-1"}
    key = ObjectKey(HUB, INSTANCE, H, name)
    return _made(key, linked if with_labels is None else with_labels, {})


def a_project_instance(name: str = "web-0") -> Snapshot:
    return _made(ObjectKey(ACME, INSTANCE, "default", name), OURS, {})


def a_root_project(name: str = "acme", *, is_deleting: bool = False) -> Snapshot:
    return _made(ObjectKey(ROOT, PROJECT, "", name), {}, {}, is_deleting=is_deleting)


def caches_of(
    *snapshots: Snapshot,
    projects: tuple[str, ...] = ("acme",),
    unsynced: tuple[tuple[PlaneName, Kind], ...] = (),
    has_hub: bool = True,
    has_root: bool = True,
) -> FakeCaches:
    """All stores of all planes; one without objects is empty, and complete unless `unsynced`."""
    roles: dict[str, Role] = dict.fromkeys(projects, Role.PROJECT)
    roles |= {HUB: Role.HUB} if has_hub else {}
    roles |= {ROOT: Role.ROOT} if has_root else {}
    stores = [
        _store(PlaneName(plane), kind, indexes, snapshots, unsynced)
        for plane, role in roles.items()
        for (on, kind), indexes in INDEXES.items()
        if on is role
    ]
    return FakeCaches(stores, roles)


def _store(
    plane: PlaneName,
    kind: Kind,
    indexes: Mapping[str, IndexFunction],
    snapshots: Iterable[Snapshot],
    unsynced: tuple[tuple[PlaneName, Kind], ...],
) -> Store:
    own = [one for one in snapshots if one.key.plane == plane and one.key.kind == kind]
    is_synced = (plane, kind) not in unsynced
    return a_store(plane, kind, own, indexes=indexes, is_synced=is_synced)


def an_entry(snapshot: Snapshot) -> CachedObject:
    """As a store would hold it."""
    role = Role.HUB if snapshot.key.plane == HUB else Role.PROJECT
    store = a_store(
        snapshot.key.plane,
        snapshot.key.kind,
        [snapshot],
        indexes=INDEXES[(role, snapshot.key.kind)],
    )
    entry = store.entry(snapshot.key.namespace, snapshot.key.name)
    assert entry is not None
    return entry


def a_change(
    before: Snapshot | None, after: Snapshot | None, *, is_initial: bool = False
) -> Change:
    return Change(
        None if before is None else an_entry(before),
        None if after is None else an_entry(after),
        is_initial=is_initial,
    )
