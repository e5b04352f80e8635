"""Pure functions of the simulated Karmada: names, matching, claims, placement, documents."""

from __future__ import annotations

import pytest
from karmada_builders.documents import CITY, GADGETS, a_gadget, a_namespace, a_policy

from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at
from compute_sim_planes.karmada.bindings.placement import (
    AFFINITY_MISMATCH,
    API_NOT_SERVED,
    choose_clusters,
)
from compute_sim_planes.karmada.bindings.resource_binding import (
    derive_binding,
    has_other_owner,
    update_binding,
)
from compute_sim_planes.karmada.bindings.status_controller import summarise_work
from compute_sim_planes.karmada.bindings.works import plan_namespace_work, plan_work
from compute_sim_planes.karmada.claims import Claim, claim_of, find_claim, with_claim, without_claim
from compute_sim_planes.karmada.kinds import (
    CLUSTER_POLICIES,
    CLUSTER_POLICY_ID,
    CLUSTER_POLICY_NAME,
    CONFLICT_RESOLUTION,
    MANAGED_ANNOTATIONS,
    MANAGED_LABELS,
    POLICY_FINALIZER,
    POLICY_ID,
    TEMPLATE_GENERATION,
)
from compute_sim_planes.karmada.members.copies import retain_member_fields
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    finalizers_of,
    labels_of,
    with_metadata,
)
from compute_sim_planes.karmada.names import (
    derive_binding_name,
    derive_work_name,
    find_cluster,
    is_propagated,
)
from compute_sim_planes.karmada.policies.admission import complete_policy
from compute_sim_planes.karmada.policies.matching import (
    MatchPriority,
    choose_policy,
    match_selectors,
)
from compute_sim_planes.time.sources import SeededIdentities

NS = "ns-1"
CLAIM = Claim("id-1", NS, "policy")
SELECTOR: JsonObject = {"apiVersion": GADGETS.api_version, "kind": GADGETS.kind}


# names --------------------------------------------------------------------------------------------


def test_names_of_works_are_those_that_were_recorded() -> None:
    namespace = "ns-6a2b6d4e-0000-4000-8000-000000000001"
    assert derive_work_name("WorkloadDeployment", namespace, "web") == "web-55bfdb978"
    assert derive_work_name("Namespace", "", namespace) == f"{namespace}-5645ddb48d"


def test_a_binding_is_named_after_its_object_and_kind() -> None:
    assert derive_binding_name("WorkloadDeployment", "web") == "web-workloaddeployment"
    assert derive_binding_name("Role", "system:node") == "system.node-role"


@pytest.mark.parametrize(
    ("namespace", "is_it"),
    [
        ("ns-1", True),
        ("karmada-system", False),
        ("karmada-cluster", False),
        ("karmada-es-dfw-1", False),
        ("kube-system", False),
        ("kubernetes", True),
    ],
)
def test_namespaces_of_the_hub_itself_are_not_propagated(namespace: str, is_it: bool) -> None:
    assert is_propagated(namespace) is is_it


def test_an_execution_space_names_its_cluster() -> None:
    assert find_cluster("karmada-es-dfw-1") == "dfw-1"
    assert find_cluster("dfw-1") == ""


# matching -----------------------------------------------------------------------------------------


def selecting(policy: str, priority: int = 0, **selector: JsonValue) -> JsonObject:
    spec: JsonObject = {
        "resourceSelectors": [{**SELECTOR, **selector}],
        "priority": priority,
    }
    return a_policy(NS, policy, spec)


LABELS: JsonObject = {"matchLabels": {CITY: "DFW"}}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, MatchPriority.ALL),
        ({"labelSelector": LABELS}, MatchPriority.LABELS),
        ({"labelSelector": {"matchLabels": {CITY: "dfw"}}}, MatchPriority.NOT),
        ({"name": "web"}, MatchPriority.NAME),
        ({"name": "other"}, MatchPriority.NOT),
        ({"name": "web", "labelSelector": {"matchLabels": {CITY: "ORD"}}}, MatchPriority.NAME),
        ({"namespace": NS}, MatchPriority.ALL),
        ({"namespace": "ns-2"}, MatchPriority.NOT),
        ({"kind": "Widget"}, MatchPriority.NOT),
        ({"apiVersion": "v1"}, MatchPriority.NOT),
    ],
)
def test_a_selector_means_an_object_more_or_less_closely(
    selector: JsonObject, expected: MatchPriority
) -> None:
    spec: JsonObject = {"resourceSelectors": [{**SELECTOR, **selector}]}
    assert match_selectors(a_gadget(NS), a_policy(NS, "p", spec)) is expected


def test_the_closest_of_several_selectors_counts() -> None:
    spec: JsonObject = {"resourceSelectors": [{**SELECTOR}, {**SELECTOR, "name": "web"}]}
    assert match_selectors(a_gadget(NS), a_policy(NS, "p", spec)) is MatchPriority.NAME


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ((selecting("b"), selecting("a")), "a"),
        ((selecting("a"), selecting("b", labelSelector=LABELS)), "b"),
        ((selecting("a", labelSelector=LABELS), selecting("b", name="web")), "b"),
        ((selecting("a", name="web"), selecting("b", 1)), "b"),
        ((selecting("a", -1, name="web"), selecting("b")), "b"),
    ],
)
def test_priority_then_closeness_then_name_decide(
    policies: tuple[JsonObject, ...], expected: str
) -> None:
    chosen = choose_policy(a_gadget(NS), policies)
    assert string_at(chosen, "metadata", "name") == expected


def test_a_policy_that_is_going_claims_nothing() -> None:
    going = selecting("a")
    object_at(going, "metadata")["deletionTimestamp"] = "2026-06-20T09:00:00Z"
    assert choose_policy(a_gadget(NS), (going,)) is None


# claims -------------------------------------------------------------------------------------------


def test_a_claim_is_found_as_it_was_made() -> None:
    claimed = with_claim(a_gadget(NS), CLAIM)
    assert find_claim(claimed) == CLAIM
    assert labels_of(claimed)[CITY] == "DFW"
    assert find_claim(without_claim(claimed)) is None
    assert without_claim(claimed) == a_gadget(NS)


def test_half_a_claim_is_none() -> None:
    assert find_claim(with_metadata(a_gadget(NS), labels={POLICY_ID: "id-1"})) is None


def test_a_claim_of_another_policy_replaces_the_one_before() -> None:
    cluster_wide = Claim("id-2", "", "all")
    claimed = with_claim(with_claim(a_gadget(NS), CLAIM), cluster_wide)
    assert find_claim(claimed) == cluster_wide
    assert POLICY_ID not in labels_of(claimed)
    assert labels_of(claimed)[CLUSTER_POLICY_ID] == "id-2"
    assert annotations_of(claimed) == {CLUSTER_POLICY_NAME: "all"}


def test_a_cluster_policy_claims_by_name_alone() -> None:
    policy = a_policy("", "all")
    policy["kind"] = CLUSTER_POLICIES.kind
    completed = complete_policy(None, policy, SeededIdentities(1))
    claim = claim_of(completed)
    assert (claim.namespace, claim.name) == ("", "all")
    assert claim.permanent_id


# admission ----------------------------------------------------------------------------------------


def test_a_new_policy_gets_an_id_a_finalizer_and_the_namespace_of_its_selectors() -> None:
    completed = complete_policy(None, a_policy(NS), SeededIdentities(1))
    assert labels_of(completed)[POLICY_ID]
    assert finalizers_of(completed) == [POLICY_FINALIZER]
    selectors = objects_at(completed, "spec", "resourceSelectors")
    assert [string_at(one, "namespace") for one in selectors] == [NS]


def test_a_complete_policy_is_left_as_the_very_same_value() -> None:
    complete = complete_policy(None, a_policy(NS), SeededIdentities(1))
    assert complete_policy(complete, complete, SeededIdentities(2)) is complete
    assert complete_policy(None, complete, SeededIdentities(2)) is complete


def test_an_update_takes_no_new_id() -> None:
    stripped = a_policy(NS)
    completed = complete_policy(a_policy(NS), stripped, SeededIdentities(1))
    assert labels_of(completed) == {}
    assert finalizers_of(completed) == []


# placement ----------------------------------------------------------------------------------------


def a_cluster(name: str, city: str = "DFW", **spec: JsonValue) -> JsonObject:
    served: JsonObject = {
        "groupVersion": GADGETS.api_version,
        "resources": [{"name": GADGETS.plural, "kind": GADGETS.kind}],
    }
    return {
        "metadata": {"name": name, "labels": {CITY: city}},
        "spec": spec,
        "status": {"apiEnablements": [served]},
    }


def a_binding(*targets: str, **placement: JsonValue) -> JsonObject:
    spec = object_at(a_policy(NS), "spec")
    policy: JsonObject = {"spec": {**spec, "placement": placement or spec["placement"]}}
    binding = derive_binding(a_gadget(NS), policy, CLAIM, "id-2")
    object_at(binding, "spec")["clusters"] = [{"name": name} for name in targets]
    return binding


TAINT: JsonObject = {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}


def test_every_cluster_that_fits_is_chosen() -> None:
    clusters = (a_cluster("ord-1", "ORD"), a_cluster("dfw-2"), a_cluster("dfw-1"))
    assert choose_clusters(a_binding(), clusters).clusters == ("dfw-1", "dfw-2")


def test_no_fit_is_reported_with_karmadas_message() -> None:
    choice = choose_clusters(a_binding(), (a_cluster("ord-1", "ORD"), a_cluster("x", "dfw")))
    assert choice.clusters == ()
    assert choice.failure == f"0/2 clusters are available: 2 {AFFINITY_MISMATCH}."


def test_no_clusters_at_all_is_reported_too() -> None:
    choice = choose_clusters(a_binding(), ())
    assert choice.failure == "0/0 clusters are available: no cluster exists."


def test_a_taint_keeps_new_objects_away_and_leaves_those_that_are_there() -> None:
    tainted = a_cluster("dfw-1", taints=[TAINT])
    refused = choose_clusters(a_binding(), (tainted,))
    assert "untolerated taint {cluster.karmada.io/not-ready:NoSchedule}" in refused.failure
    assert choose_clusters(a_binding("dfw-1"), (tainted,)).clusters == ("dfw-1",)


@pytest.mark.parametrize(
    ("toleration", "is_borne"),
    [
        ({"key": TAINT["key"], "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": TAINT["key"], "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": TAINT["key"], "operator": "Equal"}, True),
        ({"key": TAINT["key"], "operator": "Equal", "value": "x"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_toleration_bears_a_taint(toleration: JsonObject, is_borne: bool) -> None:
    binding = a_binding(clusterTolerations=[toleration])
    choice = choose_clusters(binding, (a_cluster("dfw-1", taints=[TAINT]),))
    assert bool(choice.clusters) is is_borne


def test_a_cluster_must_serve_the_kind_unless_it_is_chosen_already() -> None:
    cluster = a_cluster("dfw-1")
    cluster["status"] = {}
    assert API_NOT_SERVED in choose_clusters(a_binding(), (cluster,)).failure
    assert choose_clusters(a_binding("dfw-1"), (cluster,)).clusters == ("dfw-1",)


def test_affinity_is_asked_of_chosen_clusters_too() -> None:
    assert choose_clusters(a_binding("ord-1"), (a_cluster("ord-1", "ORD"),)).clusters == ()


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        ({"clusterNames": ["dfw-1"]}, ("dfw-1",)),
        ({"exclude": ["dfw-1"]}, ("dfw-2",)),
        ({"clusterNames": ["dfw-1"], "exclude": ["dfw-1"]}, ()),
        ({}, ("dfw-1", "dfw-2")),
    ],
)
def test_clusters_are_meant_by_name(affinity: JsonObject, expected: tuple[str, ...]) -> None:
    clusters = (a_cluster("dfw-1"), a_cluster("dfw-2"))
    assert choose_clusters(a_binding(clusterAffinity=affinity), clusters).clusters == expected


def test_a_cluster_that_is_going_is_not_chosen() -> None:
    going = a_cluster("dfw-1")
    object_at(going, "metadata")["deletionTimestamp"] = "2026-06-20T09:00:00Z"
    assert choose_clusters(a_binding(), (going,)).clusters == ()


# documents ----------------------------------------------------------------------------------------


def a_stored_gadget(uid: str = "uid-1", generation: int = 3) -> JsonObject:
    stored = a_gadget(NS)
    object_at(stored, "metadata").update(
        {
            "uid": uid,
            "generation": generation,
            "resourceVersion": "7",
            "creationTimestamp": "2026-06-20T09:00:00Z",
            "managedFields": [{}],
            "finalizers": ["a/b"],
            "ownerReferences": [{"uid": "x"}],
        }
    )
    return {**stored, "status": {"phase": "Told"}}


def test_a_binding_renewed_keeps_where_it_was_scheduled_to() -> None:
    template = a_stored_gadget()
    binding = derive_binding(template, a_policy(NS), CLAIM, "id-2")
    object_at(binding, "spec")["clusters"] = [{"name": "dfw-1"}]
    changed = a_policy(NS, spec={"conflictResolution": "Abort"})
    renewed = update_binding(binding, template, changed, CLAIM)
    assert objects_at(renewed, "spec", "clusters") == [{"name": "dfw-1"}]
    assert string_at(renewed, "spec", "conflictResolution") == "Abort"
    assert update_binding(renewed, template, changed, CLAIM) == renewed


def test_a_binding_of_an_object_of_the_same_name_that_is_gone_is_another_owners() -> None:
    binding = derive_binding(a_stored_gadget("old"), a_policy(NS), CLAIM, "id-2")
    assert has_other_owner(binding, a_stored_gadget("new"))
    assert not has_other_owner(binding, a_stored_gadget("old"))


def test_a_manifest_is_the_template_without_what_belongs_to_the_hub() -> None:
    template = a_stored_gadget()
    binding = derive_binding(template, a_policy(NS), CLAIM, "id-2")
    plan = plan_work(template, binding, "dfw-1")
    assert plan.namespace == "karmada-es-dfw-1"
    assert "status" not in plan.manifest
    metadata = object_at(plan.manifest, "metadata")
    assert set(metadata) == {"namespace", "name", "labels", "annotations"}
    assert annotations_of(plan.manifest)[TEMPLATE_GENERATION] == "3"
    assert annotations_of(plan.manifest)[CONFLICT_RESOLUTION] == "overwrite"


@pytest.mark.parametrize(
    ("annotation", "policy", "expected"),
    [
        ("", "Abort", "abort"),
        ("", "Overwrite", "overwrite"),
        ("abort", "Overwrite", "abort"),
        ("overwrite", "Abort", "overwrite"),
        ("perhaps", "Abort", "abort"),
    ],
)
def test_the_word_of_a_template_counts_more_than_the_policys(
    annotation: str, policy: str, expected: str
) -> None:
    template = a_stored_gadget()
    if annotation:
        template = with_metadata(template, annotations={CONFLICT_RESOLUTION: annotation})
    spec: JsonObject = {"conflictResolution": policy}
    binding = derive_binding(template, a_policy(NS, spec=spec), CLAIM, "id-2")
    plan = plan_work(template, binding, "dfw-1")
    assert plan.annotations[CONFLICT_RESOLUTION] == expected


def test_the_work_of_a_namespace_goes_with_it() -> None:
    namespace = a_namespace(NS, {"a": "b"})
    object_at(namespace, "metadata")["uid"] = "uid-9"
    plan = plan_namespace_work(namespace, "dfw-1")
    assert [string_at(owner, "uid") for owner in plan.owners] == ["uid-9"]
    assert labels_of(plan.manifest)["a"] == "b"


def test_members_keep_what_they_added_and_lose_what_the_hub_took_away() -> None:
    existing = with_metadata(
        a_gadget(NS),
        labels={"sent": "1", "theirs": "1"},
        annotations={
            MANAGED_LABELS: f"{CITY},sent",
            MANAGED_ANNOTATIONS: "note",
            "note": "old",
            "own": "1",
        },
        finalizers=("a/held",),
    )
    object_at(existing, "metadata")["resourceVersion"] = "9"
    desired = with_metadata(a_gadget(NS, size=2), annotations={"fresh": "1"})
    kept = retain_member_fields(desired, existing)
    assert labels_of(kept) == {CITY: "DFW", "theirs": "1"}
    assert annotations_of(kept)["own"] == "1"
    assert annotations_of(kept)["fresh"] == "1"
    assert "note" not in annotations_of(kept)
    assert finalizers_of(kept) == ["a/held"]
    assert string_at(kept, "metadata", "resourceVersion") == "9"


def a_work(applied: str, message: str = "") -> JsonObject:
    entry: JsonObject = {"health": "Healthy", "status": {"phase": "Told"}}
    condition: JsonObject = {"type": "Applied", "status": applied, "message": message}
    return {
        "metadata": {"namespace": "karmada-es-dfw-1"},
        "status": {"conditions": [condition], "manifestStatuses": [entry]},
    }


def test_a_work_that_is_not_applied_reports_no_status() -> None:
    item = summarise_work(a_work("False", "no"))
    assert item.as_json() == {
        "clusterName": "dfw-1",
        "health": "Unknown",
        "appliedMessage": "no",
    }


def test_an_applied_work_reports_the_status_of_the_member() -> None:
    item = summarise_work(a_work("True"))
    assert item.as_json() == {
        "clusterName": "dfw-1",
        "health": "Healthy",
        "applied": True,
        "status": {"phase": "Told"},
    }
