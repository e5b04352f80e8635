"""What a reconcile observes of caches, and what it does not use while they are incomplete."""

from __future__ import annotations

from dataclasses import replace

import pytest
from management_builders.filled_caches import (
    ACME,
    OURS,
    UID,
    H,
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
from compute_management_operator.hub.federation import observe as federation
from compute_management_operator.hub.identity import ProjectNamespace
from compute_management_operator.hub.policy import observe as policy
from compute_management_operator.hub.projection import observe as projection
from compute_management_operator.planes import (
    CLUSTER,
    DEPLOYMENT,
    HUB,
    INSTANCE,
    NAMESPACE,
    POLICY,
)
from compute_operator_kit.core.keys import Kind, ObjectKey, Uid
from compute_operator_kit.core.objects import Absent, Snapshot, Unreadable
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot

WEB = ObjectKey(ACME, DEPLOYMENT, "default", "web")
BASE = ObjectKey(HUB, POLICY, H, "city-dfw")
SOURCE = ObjectKey(HUB, INSTANCE, H, "web-0")
PLACE = ProjectNamespace(ACME, "default")
LIVE = federation.FederationLiveFacts(namespace=Uid(UID))
FOREIGN = {**OURS, labels.UPSTREAM_CLUSTER_NAME: "cluster-x"}


# --- federation -----------------------------------------------------------------------------------


def federated(
    caches: FakeCaches, live: federation.FederationLiveFacts = LIVE
) -> federation.ObservedDeployment:
    seen = federation.observe(WEB, caches, live, federation.FederationMemory())
    assert seen is not None
    return seen


def test_federation_sees_a_deployment_its_copy_policies_and_cells() -> None:
    misnamed = a_hub_policy("DFW", "city-zzz")
    seen = federated(
        caches_of(
            a_project_deployment(),
            a_hub_deployment(),
            a_hub_namespace(),
            a_hub_policy(),
            misnamed,
            a_hub_policy("LHR", "city-lhr", is_deleting=True),
            a_hub_cluster(),
            a_hub_deployment(namespace="ns-other"),
        )
    )
    assert isinstance(seen.deployment, federation.ProjectDeployment)
    assert seen.deployment.city_code == "DFW"
    assert isinstance(seen.copy, federation.ProjectDeployment)
    assert seen.copy.routed_to == "DFW"
    assert [one.key.name for one in seen.policies] == ["city-dfw"]
    assert seen.serving_cells == ("dfw-1",)
    assert [one.namespace for one in seen.strays] == ["ns-other"]
    assert seen.needed_by_others == frozenset()
    assert not seen.holds_ours


def test_federation_reads_what_others_need_only_during_a_deletion() -> None:
    seen = federated(
        caches_of(
            a_project_deployment(is_deleting=True),
            a_project_deployment("other", "LHR"),
            a_project_deployment("leaving", "SEA", is_deleting=True),
            a_hub_deployment("beside", "LAX"),
            a_hub_deployment(city="ORD"),
        )
    )
    assert seen.needed_by_others == {"LHR", "LAX"}


@pytest.mark.parametrize(("around", "holds"), [(FOREIGN, True), (OURS, False), ({}, False)])
def test_federation_reads_its_own_copies_where_the_namespace_names_another_project(
    around: dict[str, str],
    holds: bool,
) -> None:
    caches = caches_of(a_project_deployment(), a_hub_namespace(around), a_hub_deployment("b"))
    assert federated(caches).holds_ours is holds


@pytest.mark.parametrize("kind", [NAMESPACE, DEPLOYMENT, POLICY])
def test_federation_uses_no_incomplete_cache_of_the_hub(kind: Kind) -> None:
    caches = caches_of(a_project_deployment(), unsynced=((HUB, kind),))
    assert federation.observe(WEB, caches, LIVE, federation.FederationMemory()) is None


def test_federation_uses_no_incomplete_cache_of_the_project() -> None:
    caches = caches_of(unsynced=((ACME, DEPLOYMENT),))
    assert federation.observe(WEB, caches, LIVE, federation.FederationMemory()) is None


def test_clusters_that_cannot_be_read_are_no_empty_list() -> None:
    caches = caches_of(a_project_deployment(), unsynced=((HUB, CLUSTER),))
    assert isinstance(federated(caches).serving_cells, Unreadable)


def test_recorded_namespace_counts_only_for_a_deletion_in_a_namespace_that_is_gone() -> None:
    gone = federation.FederationLiveFacts(namespace=Absent())
    going = caches_of(a_project_deployment(is_deleting=True))
    assert federated(going, gone).hub_name == H
    assert federated(caches_of(a_project_deployment()), gone).hub_name == ""
    forged = caches_of(a_project_deployment(recorded="kube-system", is_deleting=True))
    assert federated(forged, gone).hub_name == ""
    assert federated(caches_of(), gone).hub_name == ""
    assert federated(going, federation.FederationLiveFacts()).hub_name == ""


def test_live_hub_namespace_counts_before_the_cached_one() -> None:
    asked = replace(LIVE, hub_namespace=Absent())
    caches = caches_of(a_project_deployment(), a_hub_namespace())
    assert federated(caches, asked).hub_namespace == Absent()


# --- policy ---------------------------------------------------------------------------------------


def needed(
    caches: FakeCaches, place: ProjectNamespace | Absent | Unreadable = PLACE, key: ObjectKey = BASE
) -> policy.ObservedPolicies:
    seen = policy.observe(key, caches, place, {})
    assert seen is not None
    return seen


def test_policy_is_needed_by_live_copies_and_live_deployments() -> None:
    caches = caches_of(
        a_hub_namespace(),
        a_hub_deployment("a", "dfw"),
        a_hub_deployment("b", "Dfw", is_deleting=True),
        a_project_deployment("c", "DFW"),
        a_project_deployment("d", "dFW", is_deleting=True),
        a_project_deployment("e", "LHR"),
    )
    assert needed(caches).needed == ("DFW", "dfw")
    assert needed(caches, Absent()).needed == ("dfw",)
    unreadable = needed(caches, Unreadable("Timeout"))
    assert unreadable.needed == ("dfw",)
    assert isinstance(unreadable.asked, Unreadable)


def test_incomplete_cache_of_the_project_shows_nothing_about_what_it_needs() -> None:
    caches = caches_of(a_hub_namespace(), unsynced=((ACME, DEPLOYMENT),))
    assert isinstance(needed(caches).asked, Unreadable)


def test_policy_belongs_to_the_city_it_names_or_to_its_own_name() -> None:
    second = names.derive_policy_names("DFW")[1]
    caches = caches_of(
        a_hub_policy(),
        a_hub_policy("DFW", second),
        a_hub_policy("LHR", "city-dfw-00000000"),
        a_hub_policy("DFW", "mine"),
    )
    assert [one.name for one in needed(caches).policies] == ["city-dfw", second]
    own = ObjectKey(BASE.plane, BASE.kind, BASE.namespace, "city-dfw-00000000")
    assert [one.name for one in needed(caches, key=own).policies] == ["city-dfw-00000000"]


@pytest.mark.parametrize(
    ("around", "place", "may_create"),
    [
        (a_hub_namespace(), PLACE, True),
        (a_hub_namespace({}), PLACE, True),
        (a_hub_namespace(FOREIGN), PLACE, False),
        (a_hub_namespace(FOREIGN), Absent(), True),
        (None, PLACE, False),
        (
            a_snapshot(
                ObjectKey(HUB, NAMESPACE, "", H), {"deletionTimestamp": "2026-06-20T08:00:00Z"}
            ),
            PLACE,
            False,
        ),
    ],
)
def test_policy_is_created_only_in_a_live_namespace_that_names_no_other_project(
    around: Snapshot | None,
    place: ProjectNamespace | Absent,
    may_create: bool,
) -> None:
    caches = caches_of(*(() if around is None else (around,)))
    assert needed(caches, place).may_create is may_create


@pytest.mark.parametrize("kind", [NAMESPACE, DEPLOYMENT, POLICY])
def test_policy_believes_no_half_view(kind: Kind) -> None:
    assert policy.observe(BASE, caches_of(unsynced=((HUB, kind),)), PLACE, {}) is None


def test_policies_that_we_do_not_make_are_not_looked_at() -> None:
    for namespace, name in ((BASE.namespace, "mine"), ("default", BASE.name)):
        key = ObjectKey(BASE.plane, BASE.kind, namespace, name)
        assert policy.observe(key, caches_of(), PLACE, {}) is None


def test_clusters_are_known_by_the_city_they_carry() -> None:
    caches = caches_of(a_hub_cluster(), a_hub_cluster("dfw-2"), a_hub_cluster("x", ""))
    assert policy.read_clusters(caches) == {"DFW": ("dfw-1", "dfw-2")}
    half = caches_of(unsynced=((HUB, CLUSTER),))
    assert isinstance(policy.read_clusters(half), Unreadable)


# --- projection -----------------------------------------------------------------------------------

ASKED = projection.ProjectionLiveFacts(project_namespace=PLACE, namespace=Uid(UID))


def projected(
    caches: FakeCaches, fresh: projection.ProjectionLiveFacts = ASKED
) -> projection.ObservedInstance:
    seen = projection.observe(SOURCE, caches, fresh, projection.ProjectionMemory())
    assert seen is not None
    return seen


def test_projection_sees_the_source_and_all_that_its_labels_lead_to() -> None:
    seen = projected(
        caches_of(
            a_hub_instance(),
            a_hub_namespace(),
            a_project_deployment(),
            a_project_instance(),
            a_hub_cluster(),
            a_root_project(is_deleting=True),
        )
    )
    assert isinstance(seen.source, projection.HubInstance)
    assert (seen.project, seen.namespace, seen.hub_uid) == ("acme", "default", UID)
    assert isinstance(seen.deployment, projection.InstanceDeployment)
    assert seen.deployment.city_code == "DFW"
    assert seen.cell == projection.ReportingCell("dfw-1", "DFW")
    assert isinstance(seen.projection, projection.HubInstance)
    assert seen.is_project_deleting


def test_labels_that_lead_nowhere_are_values_of_their_own() -> None:
    seen = projected(caches_of(a_hub_instance()))
    assert (seen.hub_namespace, seen.deployment, seen.cell, seen.projection) == (Absent(),) * 4
    assert not seen.is_project_deleting
    half = projected(caches_of(a_hub_instance(), unsynced=((ACME, DEPLOYMENT),)))
    assert isinstance(half.deployment, Unreadable)


def test_project_that_is_not_engaged_is_not_read() -> None:
    caches = caches_of(a_hub_instance(), projects=())
    for fresh in (ASKED, projection.ProjectionLiveFacts()):
        seen = projected(caches, fresh)
        assert not seen.is_engaged
        assert isinstance(seen.projection, Unreadable)
        assert isinstance(seen.deployment, Unreadable)


def test_source_that_is_gone_names_nothing() -> None:
    seen = projected(caches_of(a_project_instance()))
    assert isinstance(seen.source, Absent)
    assert (seen.project, seen.namespace) == (None, "")
    assert isinstance(seen.projection, projection.HubInstance)


@pytest.mark.parametrize("kind", [INSTANCE, NAMESPACE])
def test_projection_believes_no_half_view(kind: Kind) -> None:
    caches = caches_of(unsynced=((HUB, kind),))
    assert projection.observe(SOURCE, caches, ASKED, projection.ProjectionMemory()) is None


def test_other_live_deployment_that_owns_the_name_is_seen() -> None:
    def owned_by(name: str, uid: str, kind: str = "WorkloadDeployment") -> Snapshot:
        owner = {"apiVersion": "x/v1", "kind": kind, "name": name, "uid": uid}
        key = ObjectKey(ACME, INSTANCE, "default", "web-0")
        return a_snapshot(key, {"ownerReferences": [owner]})

    def others(shown: Snapshot) -> list[str]:
        caches = caches_of(
            a_hub_instance(),
            a_project_deployment(),
            a_project_deployment("other"),
            shown,
        )
        return [owner.name for owner in projected(caches).other_owners]

    assert others(owned_by("other", "uid-of-other")) == ["other"]
    assert others(owned_by("other", "of-a-former-life")) == []
    assert others(owned_by("web", "uid-of-web")) == []
    assert others(owned_by("gone", "uid-of-gone")) == []
    assert others(owned_by("other", "uid-of-other", "Workload")) == []


def test_large_instance_is_measured_by_what_is_shown_of_it() -> None:
    noise = {"metadata": {"annotations": {"n": "x" * projection.LARGEST}}}
    key = ObjectKey(HUB, INSTANCE, H, "web-0")
    small = projection.read_instance(a_snapshot(key, noise["metadata"], spec={"a": "b"}))
    assert small.size < 100
    large = projection.read_instance(a_snapshot(key, spec={"a": "b" * projection.LARGEST}))
    assert large.size > projection.LARGEST
