"""What a pass reads of the caches, and which Workloads a change concerns."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from management_builders.documents import (
    a_location_document,
    a_network_document,
    a_template_document,
    a_workload_document,
)

from compute_api_types import labels, names
from compute_management_operator.networking import LOCATION_INDEXES, served_cities
from compute_management_operator.planes import (
    DEPLOYMENT,
    LOCATION,
    NETWORK,
    PROJECT,
    ROOT,
    WORKLOAD,
)
from compute_management_operator.workload import watches
from compute_management_operator.workload.observe import (
    DeploymentIdentity,
    NetworkName,
    ObservedWorkload,
    WorkloadPlacement,
    observe,
    read_child_status,
    read_networks,
    read_placements,
    workload_uid_of,
)
from compute_operator_kit.cache.optional_kinds import Off, OptionalKindsMode, OptionalKindsReader
from compute_operator_kit.cache.store import CachedObject, Change, Store
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.json import Json, JsonMapping, JsonObject, member_object
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.core.objects import Snapshot, Unreadable, parse_object
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store

ACME = PlaneName("acme")
AUTO = OptionalKindsReader(OptionalKindsMode.AUTO)
UID = "uid-of-web"
OWNER: JsonObject = {
    "apiVersion": WORKLOAD.api_version,
    "kind": "Workload",
    "name": "web",
    "uid": UID,
    "controller": True,
}


def at(kind: Kind, name: str, namespace: str = "default", plane: PlaneName = ACME) -> ObjectKey:
    return ObjectKey(plane, kind, namespace if kind.namespaced else "", name)


def stored(kind: Kind, document: JsonObject, *, is_new: bool = False) -> Snapshot:
    metadata = member_object(document, "metadata")
    namespace = str(metadata.get("namespace", "default"))
    spec = member_object(document, "spec")
    key = at(kind, str(metadata["name"]), namespace)
    is_held = kind is WORKLOAD and not is_new
    held: JsonObject = {"finalizers": [labels.WORKLOAD_FINALIZER] if is_held else []}
    return a_snapshot(key, held, spec=spec)


def a_deployment(
    name: str = "web-us-dfw",
    *,
    city: str = "DFW",
    namespace: str = "default",
    metadata: JsonMapping | None = None,
    reference: str = "",
) -> Snapshot:
    spec: JsonObject = {
        "placementName": "us",
        "cityCode": city,
        "workloadRef": {"name": "web", "uid": reference},
    }
    key = at(DEPLOYMENT, name, namespace)
    return a_snapshot(key, metadata or {"ownerReferences": [OWNER]}, spec=spec)


class World:
    """Stores of one project, and of the root where it is asked for."""

    def __init__(
        self,
        *,
        workloads: Sequence[JsonObject] = (),
        deployments: Sequence[Snapshot] = (),
        locations: Sequence[JsonObject] | None = (),
        networks: Sequence[JsonObject] | None = (),
        projects: Sequence[Snapshot] | None = None,
        is_new: bool = False,
    ) -> None:
        self.stores = [
            a_store(
                ACME,
                WORKLOAD,
                [stored(WORKLOAD, one, is_new=is_new) for one in workloads],
                indexes=watches.WORKLOAD_INDEXES,
            ),
            a_store(ACME, DEPLOYMENT, deployments, indexes=watches.DEPLOYMENT_INDEXES),
            _optional(LOCATION, locations),
            _optional(NETWORK, networks),
        ]
        roles: dict[str, Role] = {ACME: Role.PROJECT}
        if projects is not None:
            self.stores.append(a_store(ROOT, PROJECT, projects))
            roles[ROOT] = Role.ROOT
        self.caches = FakeCaches(self.stores, roles)

    def see(
        self, name: str = "web", networking: OptionalKindsMode = OptionalKindsMode.AUTO
    ) -> ObservedWorkload:
        seen = observe(at(WORKLOAD, name), self.caches, OptionalKindsReader(networking))
        assert seen is not None
        return seen


def _optional(kind: Kind, documents: Sequence[JsonObject] | None) -> Store:
    """None: the kind is not served."""
    indexes = LOCATION_INDEXES if kind is LOCATION else {}
    if documents is None:
        store = a_store(ACME, kind, indexes=indexes, is_synced=False)
        store.mark_unserved()
        return store
    return a_store(ACME, kind, [stored(kind, one) for one in documents], indexes=indexes)


# --- reading --------------------------------------------------------------------------------------


def test_one_moment_holds_the_workload_and_what_it_depends_on() -> None:
    world = World(
        workloads=[a_workload_document("web", {"us": ("DFW", "LHR")})],
        deployments=[a_deployment()],
        locations=[a_location_document("DFW"), a_location_document("New York")],
        networks=[a_network_document(), a_network_document("unused")],
    )
    seen = world.see()
    assert [one.identity for one in seen.deployments] == [DeploymentIdentity("us", "DFW")]
    assert seen.holders == {"web-us-dfw": UID}
    assert seen.served == frozenset({"DFW"})
    assert seen.networks == (NetworkName("default", "default"),)
    assert seen.present_networks == frozenset(seen.networks)
    assert not seen.is_project_deleting


def test_of_a_new_workload_nothing_but_its_header_is_looked_at() -> None:
    world = World(workloads=[a_workload_document("web")], is_new=True)
    seen = world.see()
    assert seen == ObservedWorkload(at(WORKLOAD, "web"), seen.metadata)
    assert seen.metadata.uid == UID


def test_names_that_are_taken_are_read_with_their_workload() -> None:
    theirs: JsonObject = {**OWNER, "uid": "another"}
    world = World(
        workloads=[a_workload_document("web", {"us": ("DFW", "LHR", "ORD")})],
        deployments=[
            a_deployment("web-us-dfw", metadata={"ownerReferences": [theirs]}),
            a_deployment("web-us-lhr", metadata={"labels": {"no": "uid"}}),
        ],
    )
    assert world.see().holders == {"web-us-dfw": "another", "web-us-lhr": ""}


def test_a_deployment_in_another_namespace_is_not_ours_whatever_uid_it_carries() -> None:
    elsewhere = a_deployment(namespace="elsewhere")
    world = World(workloads=[a_workload_document()], deployments=[elsewhere])
    assert world.see().deployments == ()


def test_what_cannot_be_read_is_not_empty() -> None:
    world = World(workloads=[a_workload_document()], locations=None, networks=None)
    off = world.see(networking=OptionalKindsMode.AUTO)
    assert (off.served, off.present_networks) == (Off(), Off())
    on = world.see(networking=OptionalKindsMode.ON)
    assert isinstance(on.served, Unreadable)
    assert isinstance(on.present_networks, Unreadable)


def test_a_kind_that_is_doubted_is_unreadable_and_not_off() -> None:
    world = World(workloads=[a_workload_document()], locations=None, networks=None)
    doubting = OptionalKindsReader(OptionalKindsMode.AUTO, lambda _, kind: kind == LOCATION)
    assert isinstance(served_cities(world.caches, ACME, doubting), Unreadable)
    seen = observe(at(WORKLOAD, "web"), world.caches, doubting)
    assert seen is not None
    assert isinstance(seen.served, Unreadable)
    assert seen.present_networks == Off()


@pytest.mark.spec("M-92")
def test_networking_off_does_not_even_look() -> None:
    # A cache without these stores: reading one would raise.
    caches = FakeCaches([], {})
    assert served_cities(caches, ACME, OptionalKindsReader(OptionalKindsMode.OFF)) == Off()


def test_a_workload_that_is_not_there_or_a_cache_that_is_not_complete_is_nothing_to_see() -> None:
    assert observe(at(WORKLOAD, "web"), World().caches, AUTO) is None
    unsynced = a_store(ACME, DEPLOYMENT, indexes=watches.DEPLOYMENT_INDEXES, is_synced=False)
    workloads = a_store(ACME, WORKLOAD, [stored(WORKLOAD, a_workload_document())])
    caches = FakeCaches([workloads, unsynced], {ACME: Role.PROJECT})
    assert observe(at(WORKLOAD, "web"), caches, AUTO) is None


@pytest.mark.spec("M-43")
def test_a_hub_copy_is_never_looked_at() -> None:
    namespace = "ns-6d0f6c0e-6f5e-4c3b-9a0a-1f2d3c4b5a69"
    world = World(workloads=[a_workload_document(namespace=namespace)])
    assert observe(at(WORKLOAD, "web", namespace), world.caches, AUTO) is None


@pytest.mark.spec("M-25")
def test_a_project_that_goes_is_known_from_the_root() -> None:
    going = a_snapshot(
        at(PROJECT, "acme", plane=ROOT), {"deletionTimestamp": "2026-03-01T00:00:00Z"}
    )
    stays = a_snapshot(at(PROJECT, "acme", plane=ROOT))
    assert World(workloads=[a_workload_document()], projects=[going]).see().is_project_deleting
    assert not World(workloads=[a_workload_document()], projects=[stays]).see().is_project_deleting
    assert not World(workloads=[a_workload_document()], projects=[]).see().is_project_deleting


# --- unexpected shapes ----------------------------------------------------------------------------


@pytest.mark.spec("M-14")
def test_placements_and_cities_collapse_to_the_first() -> None:
    listed: list[Json] = [
        {"name": "us", "cityCodes": ["DFW", "dfw", "ORD", "DFW"], "scaleSettings": {"x": 1}},
        {"name": "us", "cityCodes": ["LHR"]},
        {"name": "eu", "cityCodes": ["LHR"]},
    ]
    assert read_placements({"placements": listed}) == (
        WorkloadPlacement("us", ("DFW", "ORD"), {"x": 1}),
        WorkloadPlacement("eu", ("LHR",)),
    )


@pytest.mark.fault("F1")
@pytest.mark.parametrize(
    "placements",
    [None, "x", [None, 1, {}], [{"name": ""}], [{"name": 3, "cityCodes": ["DFW"]}]],
)
def test_placements_of_an_odd_shape_are_none(placements: Json) -> None:
    assert read_placements({"placements": placements}) == ()


@pytest.mark.fault("F1")
@pytest.mark.parametrize("codes", [None, "DFW", [None, 3, ""], {}])
def test_cities_of_an_odd_shape_are_none(codes: Json) -> None:
    (placement,) = read_placements({"placements": [{"name": "us", "cityCodes": codes}]})
    assert placement.city_codes == ()


def test_networks_are_named_once_with_the_namespace_they_are_in() -> None:
    template = a_template_document(networks=("a", "b", "a"))
    spec = member_object(template, "spec")
    interfaces = spec["networkInterfaces"]
    assert isinstance(interfaces, list)
    interfaces += [None, {"network": {"name": "c", "namespace": "other"}}, {"network": "x"}]
    assert read_networks(template, "default") == (
        NetworkName("default", "a"),
        NetworkName("default", "b"),
        NetworkName("other", "c"),
    )


@pytest.mark.fault("F1")
def test_a_counter_is_never_below_zero() -> None:
    values: list[Json] = [3, -1, "3", None]
    assert [read_child_status({"replicas": value}).replicas for value in values] == [
        3,
        0,
        0,
        0,
    ]


# --- the Workload of a deployment -----------------------------------------------------------------


@pytest.mark.spec("M-05")
def test_the_owner_counts_before_the_reference_and_that_before_the_label() -> None:
    label = {labels.WORKLOAD_UID: "by-label"}
    other: JsonObject = {**OWNER, "kind": "Something"}
    owned = a_deployment(metadata={"ownerReferences": [OWNER], "labels": label}, reference="by-ref")
    referred = a_deployment(
        metadata={"ownerReferences": [other], "labels": label}, reference="by-ref"
    )
    labelled = a_deployment(metadata={"labels": label})
    uids = [
        workload_uid_of(one.metadata, member_object(one.decode(), "spec"))
        for one in (owned, referred, labelled)
    ]
    assert uids == [UID, "by-ref", "by-label"]


@pytest.mark.spec("M-05")
def test_a_deployment_without_uid_is_in_no_index_and_no_key_is_without_plane() -> None:
    nobodys = a_deployment(metadata={"labels": {"x": "y"}})
    assert list(watches.index_by_workload(nobodys.metadata, nobodys.decode())) == []
    with pytest.raises(InvariantError):
        ObjectKey(PlaneName(""), WORKLOAD, "default", "web")


# --- mapping functions ----------------------------------------------------------------------------


INDEXES = {
    DEPLOYMENT: watches.DEPLOYMENT_INDEXES,
    LOCATION: LOCATION_INDEXES,
    NETWORK: {},
}


def entry(snapshot: Snapshot) -> CachedObject:
    """An object as its store would hold it."""
    kind = snapshot.key.kind
    change = Store(ACME, kind, INDEXES[kind]).put(parse_object(ACME, kind, snapshot.decode(), None))
    assert change is not None
    assert change.after is not None
    return change.after


def changed(before: Snapshot | None, after: Snapshot | None) -> Change:
    return Change(entry(before) if before else None, entry(after) if after else None)


TWO = [a_workload_document("web"), a_workload_document("far", {"eu": ("LHR",)})]


def test_a_deployment_concerns_its_workload_before_and_after() -> None:
    world = World(workloads=TWO)
    far: JsonObject = {**OWNER, "uid": "uid-of-far"}
    mine = a_deployment("x")
    theirs = a_deployment("x", metadata={"ownerReferences": [far]})
    keys = watches.map_deployment(changed(mine, theirs), world.caches)
    assert [key.name for key in keys] == ["web", "far"]


def with_status(deployment: Snapshot, replicas: int) -> Snapshot:
    body = deployment.decode()
    body["status"] = {"replicas": replicas}
    return parse_object(ACME, DEPLOYMENT, body, None).snapshot


def test_marks_that_federation_leaves_on_a_deployment_concern_no_workload() -> None:
    world = World(workloads=TWO)
    marks: JsonObject = {"finalizers": ["x/y"], "annotations": {labels.FEDERATION_NAMESPACE: "h"}}
    bare = with_status(a_deployment("web-us-dfw"), 1)
    marked = a_deployment("web-us-dfw", metadata={"ownerReferences": [OWNER], **marks})
    assert not list(watches.map_deployment(changed(bare, with_status(marked, 1)), world.caches))


@pytest.mark.parametrize(
    "also",
    [
        {"generation": 2},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"labels": {"a": "b"}},
        {"ownerReferences": []},
        {"uid": "another"},
    ],
)
def test_whatever_else_changes_with_the_marks_concerns_the_workload(also: JsonObject) -> None:
    world = World(workloads=TWO)
    marks: JsonObject = {"ownerReferences": [OWNER], "finalizers": ["x/y"], **also}
    change = changed(a_deployment("web-us-dfw"), a_deployment("web-us-dfw", metadata=marks))
    assert "web" in {key.name for key in watches.map_deployment(change, world.caches)}


def test_a_status_that_comes_with_the_marks_concerns_the_workload() -> None:
    world = World(workloads=TWO)
    marks: JsonObject = {"ownerReferences": [OWNER], "finalizers": ["x/y"]}
    marked = with_status(a_deployment("web-us-dfw", metadata=marks), 2)
    change = changed(with_status(a_deployment("web-us-dfw"), 1), marked)
    assert "web" in {key.name for key in watches.map_deployment(change, world.caches)}


@pytest.mark.spec("M-13")
def test_a_name_that_is_freed_enqueues_workloads_that_may_use_it() -> None:
    world = World(workloads=TWO)
    theirs = a_deployment("web-us-dfw", metadata={"labels": {"not": "ours"}})
    keys = watches.map_deployment(changed(theirs, None), world.caches)
    assert [key.name for key in keys] == ["web"]
    hashed = names.derive_deployment_names(
        workload="far", workload_uid="uid-of-far", placement="eu", city_code="LHR"
    ).hashed
    theirs = a_deployment(hashed, metadata={"labels": {"not": "ours"}})
    keys = watches.map_deployment(changed(theirs, None), world.caches)
    assert [key.name for key in keys] == ["far"]


@pytest.mark.spec("M-08")
def test_a_location_concerns_workloads_of_the_city_it_has_and_the_one_it_had() -> None:
    world = World(workloads=TWO)
    before = stored(LOCATION, a_location_document("DFW", "one"))
    after = stored(LOCATION, a_location_document("LHR", "one"))
    keys = watches.map_location(changed(before, after), world.caches)
    assert [key.name for key in keys] == ["web", "far"]


@pytest.mark.spec("M-15")
def test_a_network_concerns_workloads_that_name_it_in_its_namespace() -> None:
    world = World(workloads=[*TWO, a_workload_document("else", namespace="elsewhere")])
    created = changed(None, stored(NETWORK, a_network_document()))
    assert [key.name for key in watches.map_network(created, world.caches)] == ["far", "web"]


def test_an_engaged_project_wakes_all_its_workloads_and_other_planes_none() -> None:
    world = World(workloads=TWO, projects=[])
    enqueued = sorted(key.name for key in watches.enqueue_workloads(ACME, world.caches))
    assert enqueued == ["far", "web"]
    assert list(watches.enqueue_workloads(ROOT, world.caches)) == []


@pytest.mark.fault("F1")
def test_a_workload_of_an_odd_shape_is_in_its_indexes_as_far_as_it_goes() -> None:
    odd = a_snapshot(at(WORKLOAD, "odd"), spec={"placements": 3})
    assert [
        list(index(odd.metadata, odd.decode())) for index in watches.WORKLOAD_INDEXES.values()
    ] == [[Uid("uid-of-odd")], [], [], []]
