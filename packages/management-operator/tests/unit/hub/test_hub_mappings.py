"""Which keys a change enqueues, for federation, policy and projection."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from management_builders.filled_caches import (
    ACME,
    OURS,
    UID,
    H,
    a_change,
    a_hub_cluster,
    a_hub_deployment,
    a_hub_instance,
    a_hub_namespace,
    a_hub_policy,
    a_project_deployment,
    a_project_instance,
    a_root_project,
    caches_of,
)

from compute_api_types import labels, names
from compute_management_operator.hub import watches
from compute_management_operator.hub.federation import watches as federation
from compute_management_operator.hub.identity import ProjectNamespace
from compute_management_operator.hub.indexes import (
    index_by_cells,
    index_by_quarantine,
    read_policy_code,
)
from compute_management_operator.hub.policy import watches as policy
from compute_management_operator.hub.policy.controller import read_unengaged
from compute_management_operator.hub.projection import watches as projection
from compute_management_operator.planes import DEPLOYMENT, HUB, INSTANCE, NAMESPACE, POLICY, SINGLE
from compute_operator_kit.controller.spec import DroppedChange
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable
from compute_operator_kit.testing.fakes import a_snapshot

WEB = ObjectKey(ACME, DEPLOYMENT, "default", "web")
PLACE = ProjectNamespace(ACME, "default")


def known(place: ProjectNamespace) -> Uid | None:
    return Uid(UID) if place == PLACE else None


def unknown(_: ProjectNamespace) -> Uid | None:
    return None


def named(keys: Iterable[ObjectKey | DroppedChange]) -> list[str]:
    return sorted(one.reason if isinstance(one, DroppedChange) else one.name for one in keys)


# --- federation -----------------------------------------------------------------------------------


@pytest.mark.spec("M-30")
@pytest.mark.parametrize(
    ("own", "around", "expected"),
    [
        (OURS, {}, WEB),
        ({}, OURS, WEB),
        ({labels.UPSTREAM_NAMESPACE: "default"}, OURS, WEB),
        ({}, {}, DroppedChange("no_project")),
        ({labels.UPSTREAM_CLUSTER_NAME: "acme"}, {}, DroppedChange("no_project")),
        ({labels.UPSTREAM_CLUSTER_NAME: "cluster-acme"}, {}, DroppedChange("no_namespace")),
        ({**OURS, labels.UPSTREAM_CLUSTER_NAME: "cluster-x"}, {}, DroppedChange("not_engaged")),
    ],
)
def test_copy_leads_to_its_deployment_or_is_dropped_with_a_reason(
    own: dict[str, str], around: dict[str, str], expected: ObjectKey | DroppedChange
) -> None:
    caches = caches_of(a_hub_namespace(around))
    change = a_change(None, a_hub_deployment(with_labels=own))
    assert list(federation.map_copy(change, caches)) == [expected]


def test_copy_without_a_namespace_in_the_cache_is_mapped_by_its_own_labels() -> None:
    change = a_change(a_hub_deployment(), a_hub_deployment(with_labels={}))
    assert named(federation.map_copy(change, caches_of())) == ["no_project", "web"]


def test_hub_namespace_leads_to_deployments_that_recorded_it() -> None:
    other = a_project_deployment("other", recorded="ns-other")
    caches = caches_of(a_project_deployment(), other, projects=("acme", "beta"))
    for namespace in (a_hub_namespace(), a_hub_namespace({})):
        change = a_change(namespace, None)
        assert named(federation.map_hub_namespace(change, caches)) == ["web"]
    elsewhere = a_hub_namespace({**OURS, labels.UPSTREAM_CLUSTER_NAME: "cluster-beta"})
    assert named(federation.map_hub_namespace(a_change(None, elsewhere), caches)) == []
    freed = a_change(a_hub_namespace(), elsewhere)
    assert named(federation.map_hub_namespace(freed, caches)) == ["web"]


@pytest.mark.parametrize(
    ("before", "after", "enqueued"),
    [
        (None, a_hub_policy(), ["web"]),
        (a_hub_policy(), None, ["web"]),
        (a_hub_policy(), a_hub_policy(is_deleting=True), ["web"]),
        (a_hub_policy("LHR"), a_hub_policy(), ["web"]),
        (a_hub_policy(), a_hub_policy(), []),
        (None, a_hub_policy("LHR"), []),
    ],
)
def test_policy_leads_to_the_deployments_of_its_city_when_it_matters(
    before: Snapshot | None, after: Snapshot | None, enqueued: list[str]
) -> None:
    london = a_project_deployment("london", "SEA")
    for around in ((a_hub_namespace(),), ()):
        caches = caches_of(a_project_deployment(), london, *around)
        assert named(federation.map_policy(a_change(before, after), caches)) == enqueued


@pytest.mark.parametrize(
    ("before", "after", "enqueued"),
    [
        (None, a_hub_cluster(), ["web"]),
        (a_hub_cluster(), None, ["web"]),
        (a_hub_cluster(city="LHR"), a_hub_cluster(), ["london", "web"]),
        (a_hub_cluster(), a_hub_cluster(city=""), ["web"]),
        (a_hub_cluster(), a_hub_cluster(), []),
        (None, a_hub_cluster(city=""), []),
    ],
)
def test_cluster_leads_to_its_cities_before_and_after_and_its_heartbeat_to_nothing(
    before: Snapshot | None, after: Snapshot | None, enqueued: list[str]
) -> None:
    caches = caches_of(a_project_deployment(), a_project_deployment("london", "LHR"))
    assert named(federation.map_cluster(a_change(before, after), caches)) == enqueued


def test_engagement_enqueues_deployments_and_copies_without_one() -> None:
    caches = caches_of(
        a_project_deployment(),
        a_hub_namespace(),
        a_hub_deployment("orphan"),
        a_hub_deployment("lost", with_labels={**OURS, labels.UPSTREAM_CLUSTER_NAME: "cluster-x"}),
    )
    assert named(federation.enqueue_deployments(ACME, caches)) == ["orphan", "web"]
    assert named(federation.enqueue_deployments(HUB, caches)) == []
    assert named(federation.enqueue_deployments(PlaneName("gone"), caches)) == []
    alone = caches_of(a_project_deployment(), has_hub=False)
    assert named(federation.enqueue_deployments(ACME, alone)) == ["web"]


# --- policy ---------------------------------------------------------------------------------------


def test_policy_leads_to_its_name_and_to_the_city_it_may_be_second_of() -> None:
    def enqueued(name: str, namespace: str = H) -> list[str]:
        created = a_hub_policy(name=name, namespace=namespace)
        return named(policy.map_policy(a_change(None, created), caches_of()))

    assert enqueued("city-lax") == ["city-lax"]
    assert enqueued("city-lax-1a2b3c4d") == ["city-lax", "city-lax-1a2b3c4d"]
    assert enqueued("mine") == []
    assert enqueued("city-lax", "default") == []


@pytest.mark.parametrize(
    ("before", "after", "enqueued"),
    [
        (None, a_hub_deployment(), ["city-dfw"]),
        (a_hub_deployment(), None, ["city-dfw"]),
        (a_hub_deployment(), a_hub_deployment(is_deleting=True), ["city-dfw"]),
        (a_hub_deployment(city="LHR"), a_hub_deployment(), ["city-dfw", "city-lhr"]),
        (a_hub_deployment(), a_hub_deployment(), []),
        (None, a_hub_deployment(city="-"), []),
        (None, a_hub_deployment(namespace="default"), []),
    ],
)
def test_copy_leads_to_the_policies_of_its_cities_when_it_matters(
    before: Snapshot | None, after: Snapshot | None, enqueued: list[str]
) -> None:
    assert named(policy.map_copy(a_change(before, after), caches_of())) == enqueued


def test_deployment_leads_to_the_policy_in_its_hub_namespace_once_that_is_known() -> None:
    change = a_change(a_project_deployment(city="LHR"), a_project_deployment())
    assert list(policy.map_deployment(change, caches_of(), known)) == [
        ObjectKey(HUB, POLICY, H, "city-lhr"),
        ObjectKey(HUB, POLICY, H, "city-dfw"),
    ]
    first = a_change(None, a_project_deployment())
    assert list(policy.map_deployment(first, caches_of(), unknown)) == [
        ObjectKey(ACME, POLICY, "default", "city-dfw")
    ]


@pytest.mark.parametrize(
    ("there", "enqueued"),
    [
        ([a_hub_policy("DFW", "city-dfw")], []),
        ([a_hub_policy("DFW", "city-dfw", is_deleting=True)], ["city-dfw"]),
        ([a_hub_policy("LHR", "city-dfw")], ["city-dfw"]),
        ([a_hub_policy("DFW", "city-dfw", namespace="ns-other")], ["city-dfw"]),
        ([], ["city-dfw"]),
    ],
)
def test_new_object_in_a_city_with_a_policy_enqueues_nothing(
    there: list[Snapshot], enqueued: list[str]
) -> None:
    caches = caches_of(*there)
    copy, deployment = a_hub_deployment(), a_project_deployment()
    assert named(policy.map_copy(a_change(None, copy), caches)) == enqueued
    assert named(policy.map_deployment(a_change(None, deployment), caches, known)) == enqueued
    # A deleted one may have been the last, also where the policy exists.
    assert named(policy.map_copy(a_change(copy, None), caches)) == ["city-dfw"]
    assert named(policy.map_deployment(a_change(deployment, None), caches, known)) == ["city-dfw"]


def test_cluster_leads_to_policies_of_its_city_that_exist() -> None:
    second = a_hub_policy("DFW", names.derive_policy_names("DFW")[1])
    foreign = a_hub_policy("DFW", "mine")
    caches = caches_of(second, foreign, a_hub_policy("LHR", "city-lhr"))
    change = a_change(None, a_hub_cluster())
    assert named(policy.map_cluster(change, caches)) == ["city-dfw"]


def test_hub_key_takes_turns_with_the_project_its_namespace_names() -> None:
    caches = caches_of(a_hub_namespace(), a_hub_namespace({}, "ns-x"))
    assert watches.fairness_by_project(policy.hub_key(H, "city-dfw"), caches) == "acme"
    hub_x, hub_y = (policy.hub_key(name, "city-dfw") for name in ("ns-x", "ns-y"))
    assert watches.fairness_by_project(hub_x, caches) == watches.NO_PROJECT
    assert watches.fairness_by_project(hub_y, caches) == watches.NO_PROJECT
    assert watches.fairness_by_project(WEB, caches) == "acme"


def test_project_that_is_not_engaged_is_gone_only_if_the_root_lacks_it() -> None:
    assert read_unengaged(PLACE, caches_of()) == Absent()
    there = caches_of(a_root_project())
    assert isinstance(read_unengaged(PLACE, there), Unreadable)
    single = caches_of(has_root=False)
    assert isinstance(read_unengaged(ProjectNamespace(SINGLE, "default"), single), Unreadable)
    assert read_unengaged(PLACE, single) == Absent()


# --- projection -----------------------------------------------------------------------------------


def test_project_instance_leads_to_its_source_or_first_to_itself() -> None:
    change = a_change(a_project_instance(), None)
    assert list(projection.map_instance(change, known)) == [ObjectKey(HUB, INSTANCE, H, "web-0")]
    assert list(projection.map_instance(change, unknown)) == [change.key]


def test_project_instances_of_a_first_list_lead_to_their_namespace_once_for_all() -> None:
    around = ObjectKey(ACME, NAMESPACE, "", "default")
    for name in ("web-0", "web-1"):
        first = a_change(None, a_project_instance(name), is_initial=True)
        assert list(projection.map_instance(first, unknown)) == [around]
        assert list(projection.map_instance(first, known)) == [ObjectKey(HUB, INSTANCE, H, name)]
    assert projection.project_namespace_of(around) == PLACE
    assert projection.project_namespace_of(WEB) == PLACE


def test_lookup_of_a_namespace_leads_to_projections_without_a_source() -> None:
    caches = caches_of(a_hub_instance(), a_project_instance(), a_project_instance("gone-3"))
    around = ObjectKey(ACME, NAMESPACE, "", "default")
    assert named(projection.resolve(around, Uid(UID), caches)) == ["gone-3"]


def test_deployments_of_a_first_list_enqueue_nothing_because_engagement_enqueues_all() -> None:
    caches = caches_of(a_hub_instance())
    first = a_change(None, a_project_deployment(), is_initial=True)
    assert list(projection.map_deployment(first, caches, known)) == []
    assert named(projection.enqueue_instances(ACME, caches)) == ["web-0"]


def test_copies_on_a_shared_server_lead_nowhere() -> None:
    instance = a_snapshot(ObjectKey(ACME, INSTANCE, H, "web-0"))
    assert list(projection.map_instance(a_change(None, instance), known)) == []
    deployment = a_snapshot(ObjectKey(ACME, DEPLOYMENT, H, "web"))
    caches = caches_of()
    assert list(projection.map_deployment(a_change(None, deployment), caches, known)) == []


@pytest.mark.parametrize(
    ("before", "after", "enqueued"),
    [
        (None, a_project_deployment(), ["web-0"]),
        (a_project_deployment(), None, ["web-0"]),
        (a_project_deployment(), a_project_deployment(is_deleting=True), ["web-0"]),
        (a_project_deployment(city="LHR"), a_project_deployment(), ["web-0"]),
        (a_project_deployment(), a_project_deployment(), []),
    ],
)
def test_deployment_leads_to_its_instances_when_it_matters(
    before: Snapshot | None, after: Snapshot | None, enqueued: list[str]
) -> None:
    caches = caches_of(a_hub_instance(), a_hub_instance("other-0", {}))
    change = a_change(before, after)
    assert named(projection.map_deployment(change, caches, known)) == enqueued
    first = ["web"] if enqueued else []
    assert named(projection.map_deployment(change, caches, unknown)) == first


def test_lookup_of_a_project_object_leads_to_the_same_instances() -> None:
    caches = caches_of(a_hub_instance())
    assert named(projection.resolve(WEB, Uid(UID), caches)) == ["web-0"]
    shown = ObjectKey(ACME, INSTANCE, "default", "gone-3")
    assert named(projection.resolve(shown, Uid(UID), caches)) == ["gone-3"]


def test_hub_namespace_cluster_and_engagement_lead_to_their_instances() -> None:
    caches = caches_of(a_hub_instance(), a_hub_instance("stray-0", {}))
    around = a_change(None, a_hub_namespace())
    assert named(projection.map_hub_namespace(around, caches)) == ["stray-0", "web-0"]
    assert named(projection.map_cluster(a_change(None, a_hub_cluster()), caches)) == ["web-0"]
    heartbeat = a_change(a_hub_cluster(), a_hub_cluster())
    assert named(projection.map_cluster(heartbeat, caches)) == []
    assert named(projection.enqueue_instances(ACME, caches)) == ["web-0"]
    assert named(projection.enqueue_instances(HUB, caches)) == []
    assert named(projection.enqueue_instances(ACME, caches_of(has_hub=False))) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (a_hub_cluster(city="LHR"), a_hub_cluster()),
        (a_hub_cluster(), a_hub_cluster(city="LHR")),
        (a_hub_cluster(), a_hub_cluster(city="")),
        (a_hub_cluster(), None),
    ],
)
def test_cluster_leads_to_its_instances_when_its_city_changes(
    before: Snapshot, after: Snapshot | None
) -> None:
    caches = caches_of(a_hub_instance(), a_hub_instance("stray-0", {}))
    assert named(projection.map_cluster(a_change(before, after), caches)) == ["web-0"]


# --- indexes --------------------------------------------------------------------------------------


def test_policy_that_names_several_cities_or_none_names_no_city() -> None:
    def code(*selectors: object) -> str:
        body: JsonObject = {"spec": {"resourceSelectors": [*selectors]}}  # type: ignore[list-item]  # F1: anything
        return read_policy_code(body)

    lax = {"labelSelector": {"matchLabels": {labels.TOPOLOGY_CITY_CODE: "LAX"}}}
    assert code(lax) == "LAX"
    assert code(lax, lax) == "LAX"
    assert code(lax, {}) == ""
    assert code() == ""
    assert code("odd") == ""


@pytest.mark.parametrize(
    ("conditions", "bucket"),
    [
        ([], "0"),
        (["odd", {"type": "Ready"}], "0"),
        ([{"type": "CellsReporting", "status": "True", "message": "a"}], "1"),
        ([{"type": "CellsReporting", "status": "False", "message": "a,b"}], "many"),
        ([{"type": "CellsReporting", "status": "False", "message": ""}], "0"),
        ([{"type": "CellsReporting", "status": "Unknown", "message": "a"}], "0"),
    ],
)
def test_copies_are_counted_by_the_cells_that_report(
    conditions: list[JsonObject], bucket: str
) -> None:
    body: JsonObject = {"status": {"conditions": [*conditions]}}
    assert list(index_by_cells(_nothing(), body)) == [bucket]


def test_quarantine_is_found_by_its_reason() -> None:
    marked = a_snapshot(metadata={"annotations": {labels.QUARANTINE_REASON: "oversized"}})
    assert list(index_by_quarantine(marked.metadata, {})) == ["oversized"]
    assert list(index_by_quarantine(_nothing(), {})) == []


def _nothing() -> Metadata:
    return a_snapshot().metadata
