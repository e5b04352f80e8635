"""What can and what cannot be known: access, quota numbers, contradictions between planes."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from kubectl_worlds import (
    HUB_NAMESPACE,
    NOW,
    Planes,
    block_instance,
    bucket,
    claim,
    condition,
    document,
    find,
    hub_namespace,
    part,
    set_condition,
    settled,
)

from compute_api_types import labels, reasons
from compute_kubectl.explain.causes import Actionability
from compute_kubectl.explain.diagnosis import Verdict
from compute_kubectl.explain.explain import Subject, explain
from compute_kubectl.explain.overview import explain_all
from compute_kubectl.explain.quota_facts import OTHER, derive_usage
from compute_kubectl.explain.stages import Stage
from compute_kubectl.render.text import render_why
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.capture import Capture, CapturedPlane, Reading
from compute_kubectl.snapshot.decode import decode
from compute_kubectl.snapshot.planes import Role

RECORDED = Path(__file__).parents[4] / "e2e/world/recorded/go-operators"
UNREAD = (Access.REFUSED, Access.UNREACHABLE, Access.NOT_SERVED, Access.NOT_ASKED)


def text_of(planes: Planes) -> str:
    return "\n".join(render_why(planes.explain(), 200))


# --- access ---------------------------------------------------------------------------------------


@pytest.mark.spec("WY-04")
@pytest.mark.parametrize("access", UNREAD)
def test_a_plane_that_was_not_read_never_proves_absence(access: Access) -> None:
    planes = settled()
    for documents in (planes.hub, *planes.cells.values()):
        for plural in documents:
            documents[plural] = []  # nothing would be there, had it been read
    planes.hide("hub", "dfw-1", "ord-1", access=access)
    answer = planes.explain()
    assert answer.verdict is Verdict.READY  # the project's own status answers to its generation
    silent = [one for one in answer.contradictions if "does not answer" in one.text]
    assert len(silent) == (2 if access is Access.UNREACHABLE else 0)
    assert len(answer.contradictions) == len(silent)
    assert "absent" not in text_of(planes)
    assert "no copy" not in text_of(planes)


@pytest.mark.spec("WY-04")
def test_the_four_ways_of_not_reading_are_told_apart_in_the_text() -> None:
    planes = settled()
    planes.unread["hub", "propagationpolicies"] = Access.REFUSED
    planes.unread["dfw-1", "networkbindings"] = Access.NOT_SERVED
    planes.hide("ord-1", access=Access.UNREACHABLE)
    planes.cells["lhr-1"] = {}
    planes.hide("lhr-1", access=Access.NOT_ASKED)
    text = text_of(planes)
    assert "hub: refused: policies" in text
    assert "dfw-1: not served: network bindings" in text
    assert "ord-1: unreachable" in text
    assert "not asked: lhr-1" in text


@pytest.mark.spec("WY-04")
def test_a_list_that_was_cut_does_not_prove_absence() -> None:
    planes = settled()
    capture = planes.capture()
    hub = capture.of(Role.HUB)[0]
    readings = dict(hub.readings)
    readings["workloaddeployments"] = Reading(Access.READ, (), NOW, is_partial=True)
    cut = CapturedPlane("hub", Role.HUB, Access.READ, readings=readings)
    others = tuple(one for one in capture.planes if one.role is not Role.HUB)
    answer = explain(decode(Capture("shop", NOW, (*others, cut))), NOW, Subject("web"))
    assert answer.verdict is Verdict.READY
    assert not any("hub copy is gone" in one.text for one in answer.contradictions)


@pytest.mark.spec("WY-05")
@pytest.mark.parametrize(
    ("reason", "kind", "gates"),
    [
        (reasons.QUOTA_EXCEEDED, "QuotaGranted", ("Quota",)),
        (reasons.IMAGE_UNAVAILABLE, "Available", ()),
        (reasons.SOURCE_NOT_FOUND, "ReferencedDataReady", ("ReferencedData",)),
        (reasons.NETWORK_NOT_FOUND, "", ()),
    ],
)
def test_the_project_alone_gives_the_same_verdict(
    reason: str, kind: str, gates: tuple[str, ...]
) -> None:
    planes = settled()
    if kind:
        stopped = condition(kind, "False", reason, f"because of {reason}", 60)
        block_instance(planes, "web-main-dfw-1", stopped, gates=gates)
    else:
        part(planes.project["workloads"][0], "metadata")["generation"] = 2
        missing = condition("Ready", "False", reason, "Unable to find networks: x", 60)
        set_condition(planes.project["workloads"][0], missing)
    everything, alone = planes.explain(), planes.only_project().explain()
    for answer in (everything, alone):
        assert answer.finding is not None
        assert (answer.finding.reason, answer.verdict) == (reason, Verdict.WAITING)
    assert everything.finding is not None
    assert alone.finding is not None
    assert alone.finding.stage == everything.finding.stage
    assert alone.actionability is everything.actionability is Actionability.USER
    assert [city.verdict for city in alone.cities] == [city.verdict for city in everything.cities]


def test_stages_between_project_and_cell_are_not_visible_to_a_tenant() -> None:
    planes = settled().only_project()
    part(planes.project["workloaddeployments"][0], "metadata")["generation"] = 2
    city = planes.city()
    assert city.verdict is Verdict.NOT_VISIBLE
    assert city.finding is not None
    assert city.finding.stage is Stage.FEDERATED
    assert "platform operators can look" in city.finding.text
    assert city.age is not None


# --- quota ----------------------------------------------------------------------------------------


@pytest.mark.spec("WY-09")
def test_users_of_a_bucket_sum_to_what_is_allocated() -> None:
    planes = settled()
    planes.project["allowancebuckets"] = [bucket("vcpus", 40000, 7000)]
    snapshot = planes.snapshot()
    (vcpus,) = snapshot.project.buckets.items
    usage = derive_usage(snapshot, vcpus)
    assert usage.by_workload == {"web": 4000, OTHER: 3000}
    assert sum(usage.by_workload.values()) == vcpus.allocated


@pytest.mark.spec("WY-09")
def test_numbers_of_a_denial_are_those_of_the_bucket() -> None:
    planes = settled()
    exceeded = condition("QuotaGranted", "False", "QuotaExceeded", "too much", 60)
    block_instance(planes, "web-main-dfw-1", exceeded, gates=("Quota",), ready="PendingQuota")
    planes.project["resourceclaims"].remove(
        find(planes.project["resourceclaims"], "instance-web-main-dfw-1")
    )
    planes.project["allowancebuckets"] = [bucket("instances", 3, 3), bucket("vcpus", 40000, 3000)]
    finding = planes.city().finding
    assert finding is not None
    assert finding.details == (
        "instances: 1 asked, 0 of 3 left in project 'acme' (bucket-in…; used by web 3)",
    )


# --- contradictions -------------------------------------------------------------------------------


def ready_in_project_only(planes: Planes) -> None:
    real = find(planes.cells["dfw-1"]["instances"], "web-main-dfw-0")
    set_condition(real, condition("Available", "False", "InstanceCrashing", "exit 1", 300))
    set_condition(real, condition("Ready", "False", "InstanceCrashing", "exit 1", 300))


def cell_unreachable(planes: Planes) -> None:
    gone = condition("Ready", "False", "ClusterNotReachable", "cluster is not reachable", 300)
    set_condition(find(planes.hub["clusters"], "dfw-1"), gone)


def cell_silent(planes: Planes) -> None:
    planes.hide("dfw-1", access=Access.UNREACHABLE)


def copy_left_over(planes: Planes) -> None:
    planes.cells["dfw-1"]["instances"] = planes.cells["dfw-1"]["instances"][:1]


def projection_left_over(planes: Planes) -> None:
    planes.hub["instances"] = planes.hub["instances"][1:]


def claim_left_over(planes: Planes) -> None:
    planes.project["resourceclaims"].append(claim("DFW", 7))


def two_clusters(planes: Planes) -> None:
    twin = dict(planes.hub["clusters"][0])
    twin["metadata"] = {**part(twin, "metadata"), "name": "dfw-9"}
    planes.hub["clusters"].append(twin)


def hub_copy_gone(planes: Planes) -> None:
    planes.hub["workloaddeployments"] = planes.hub["workloaddeployments"][1:]


def namespace_recreated(planes: Planes) -> None:
    former = hub_namespace()
    part(former, "metadata")["name"] = "ns-00000000-0000-0000-0000-000000000000"
    planes.hub["namespaces"].append(former)


CONTRADICTIONS: tuple[tuple[Callable[[Planes], None], str], ...] = (
    (ready_in_project_only, "project shows Ready, dfw-1 does not"),
    (cell_unreachable, "cell dfw-1 is unreachable"),
    (cell_silent, "the API of cell dfw-1 does not answer"),
    (copy_left_over, "without an Instance on dfw-1"),
    (projection_left_over, "without a hub copy"),
    (claim_left_over, "for a slot that does not exist"),
    (two_clusters, "AmbiguousCity"),
    (hub_copy_gone, "its hub copy is gone"),
    (namespace_recreated, "belongs to a former namespace"),
)


@pytest.mark.parametrize(
    ("disturb", "words"), CONTRADICTIONS, ids=[one.__name__ for one, _ in CONTRADICTIONS]
)
def test_a_contradiction_is_listed_with_both_objects_and_both_times(
    disturb: Callable[[Planes], None], words: str
) -> None:
    planes = settled()
    assert planes.explain().contradictions == ()
    disturb(planes)
    listed = [one for one in planes.explain().contradictions if words in one.text]
    assert listed, [one.text for one in planes.explain().contradictions]
    one = listed[0]
    assert one.first.object.name
    assert one.second.object.name
    assert one.first.value != one.second.value or one.first.object != one.second.object
    assert one.first_at is not None
    assert one.second_at is not None
    assert words in text_of(planes)


# --- objects of other operators -------------------------------------------------------------------


def recorded(name: str) -> Capture:
    plurals = {
        "Namespace": "namespaces",
        "Workload": "workloads",
        "WorkloadDeployment": "workloaddeployments",
        "Instance": "instances",
        "ResourceClaim": "resourceclaims",
        "AllowanceBucket": "allowancebuckets",
        "PropagationPolicy": "propagationpolicies",
        "ResourceBinding": "resourcebindings",
        "Cluster": "clusters",
    }
    base = json.loads((RECORDED / "running.json").read_text("utf-8"))
    changed = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))
    planes: list[CapturedPlane] = []
    for plane, role in (("project", Role.PROJECT), ("hub", Role.HUB), ("dfw-1", Role.CELL)):
        newer = {(one["kind"], one["metadata"]["name"]): one for one in changed.get(plane, [])}
        items = [newer.get((one["kind"], one["metadata"]["name"]), one) for one in base[plane]]
        readings = {
            plural: Reading(Access.READ, tuple(one for one in items if one["kind"] == kind), NOW)
            for kind, plural in plurals.items()
        }
        planes.append(CapturedPlane(plane, role, Access.READ, readings=readings))
    return Capture("default", NOW, tuple(planes))


@pytest.mark.spec("WY-20")
@pytest.mark.parametrize("name", ["running", "deleting"])
def test_objects_of_the_go_operators_are_explained(name: str) -> None:
    snapshot = decode(recorded(name))
    workloads = snapshot.project.workloads.items
    assert len(workloads) >= 4
    verdicts: set[Verdict] = set()
    for one in workloads:
        answer = explain(snapshot, NOW, Subject(one.meta.name))
        assert answer.cities
        verdicts.add(answer.verdict)
        assert all(len(line) <= 100 for line in render_why(answer, 100))
    if name == "deleting":
        assert Verdict.DELETING in verdicts
    else:
        notes = [
            note
            for one in workloads
            for city in explain(snapshot, NOW, Subject(one.meta.name)).cities
            for note in city.notes
        ]
        assert any("not provable" in note for note in notes)


def test_objects_of_other_namespaces_are_left_alone() -> None:
    planes = settled()
    planes.hub["workloaddeployments"].append(
        {**planes.hub["workloaddeployments"][0], "metadata": {"name": "x", "namespace": "ns-other"}}
    )
    planes.hub["instances"].append(document("Instance", "stray", HUB_NAMESPACE))
    part(planes.hub["instances"][-1], "metadata")["labels"] = {
        labels.WORKLOAD_DEPLOYMENT_NAME: "another"
    }
    assert planes.explain() == settled().explain()


# --- all Workloads --------------------------------------------------------------------------------


@pytest.mark.spec("WY-17")
def test_workloads_are_sorted_by_rank_then_by_age_then_by_name() -> None:
    planes = settled()
    first = planes.project["workloads"][0]
    planes.project["workloads"] = [first]

    def add(name: str, reason: str, seconds: float) -> None:
        one = deepcopy(first)
        part(one, "metadata")["name"] = name
        part(one, "metadata")["uid"] = f"uid-{name}"
        part(one, "metadata")["generation"] = 2
        set_condition(one, condition("Ready", "False", reason, "", seconds))
        planes.project["workloads"].append(one)

    add("young", reasons.NETWORK_NOT_FOUND, 120)
    add("b-old", reasons.NETWORK_NOT_FOUND, 60)
    add("a-old", reasons.NETWORK_NOT_FOUND, 60)
    add("worst", reasons.NAME_COLLISION, 300)
    answers = explain_all(planes.snapshot(), NOW)
    assert [one.name for one in answers] == ["worst", "a-old", "b-old", "young", "web"]
    assert [one.verdict for one in answers[:4]] == [Verdict.WAITING] * 4
