"""`explain` depends on what the planes hold, not on order, foreign objects or unknown fields."""

from copy import deepcopy
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubectl_worlds import NOW, Planes, condition, document, part, settled

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.explain.explain import Subject, explain
from compute_kubectl.render.documents import document_of
from compute_kubectl.render.text import render_why
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.capture import Capture, CapturedPlane, Reading
from compute_kubectl.snapshot.decode import decode
from compute_kubectl.snapshot.planes import Role

KINDS = {
    Role.PROJECT: (
        *("namespaces", "workloads", "workloaddeployments", "instances", "resourceclaims"),
        *("allowancebuckets", "events"),
    ),
    Role.HUB: (
        *("namespaces", "workloaddeployments", "instances", "propagationpolicies"),
        *("resourcebindings", "clusters", "events"),
    ),
    Role.CELL: (
        *("workloaddeployments", "instances", "networkbindings", "networkcontexts"),
        *("subnetclaims", "subnets", "locations", "pods", "events"),
    ),
}
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


def disturbed(seed: int) -> Planes:
    """One of many worlds in which something is wrong."""
    planes = settled(replicas=1 + seed % 3)
    every = [one for plural in ("instances", "workloaddeployments") for one in planes.every(plural)]
    victim = every[seed % len(every)]
    reasons = ("QuotaExceeded", "InstanceCrashing", "Starting", "SomethingNew")
    part(victim, "status")["conditions"] = [
        condition("Ready", "False", reasons[seed % 4], "a message", seed % 500)
    ]
    if seed % 5 == 0:
        planes.hub["resourcebindings"] = []
    if seed % 7 == 0:
        planes.hide("dfw-1", access=list(Access)[seed % 5])
    return planes


@pytest.mark.spec("WY-03")
@settings(max_examples=40)
@given(seed=st.integers(0, 5000), data=st.data())
def test_the_order_of_objects_does_not_matter(seed: int, data: st.DataObject) -> None:
    planes = disturbed(seed)
    expected = planes.explain()
    for documents in (planes.project, planes.hub, *planes.cells.values()):
        for plural in documents:
            documents[plural] = data.draw(st.permutations(documents[plural]))
    assert planes.explain() == expected


@pytest.mark.spec("WY-03")
@settings(max_examples=40)
@given(seed=st.integers(0, 5000))
def test_objects_of_others_do_not_matter(seed: int) -> None:
    planes = disturbed(seed)
    expected = planes.explain()
    other = settled()
    for documents, others in (
        (planes.project, other.project),
        (planes.hub, other.hub),
        (planes.cells["dfw-1"], other.cells["dfw-1"]),
    ):
        for plural in ("workloaddeployments", "instances"):
            for one in deepcopy(others[plural]):
                metadata = part(one, "metadata")
                metadata["name"] = f"other-{metadata['name']}"
                metadata["uid"] = f"other-{metadata['uid']}"
                metadata["labels"] = {labels.WORKLOAD_DEPLOYMENT_NAME: "other"}
                if plural == "workloaddeployments":
                    part(one, "spec", "workloadRef")["uid"] = "another"
                documents[plural].append(one)
    planes.hub["clusters"].append(document("Cluster", "elsewhere"))
    assert planes.explain() == expected


@pytest.mark.spec("WY-03")
@settings(max_examples=40)
@given(seed=st.integers(0, 5000), extra=json_values)
def test_unknown_fields_do_not_matter(seed: int, extra: JsonValue) -> None:
    planes = disturbed(seed)
    expected = planes.explain()
    for documents in (planes.project, planes.hub, *planes.cells.values()):
        for items in documents.values():
            for one in items:
                one["ofALaterRelease"] = extra
                part(one, "metadata")["ofALaterRelease"] = extra
                if isinstance(one.get("status"), dict):
                    part(one, "status")["ofALaterRelease"] = extra
    assert planes.explain() == expected


@st.composite
def mangled(draw: st.DrawFn) -> JsonObject:
    """A document of the settled world in which one member at any depth is something else."""
    every = [one for plural in sorted(KINDS[Role.PROJECT]) for one in settled().every(plural)]
    one = deepcopy(draw(st.sampled_from(every)))
    place: JsonObject = one
    for _ in range(draw(st.integers(0, 4))):
        inner = [value for value in place.values() if isinstance(value, dict)]
        if not inner:
            break
        place = draw(st.sampled_from(inner))
    if place:
        place[draw(st.sampled_from(sorted(place)))] = draw(json_values)
    return one


@st.composite
def nonsense(draw: st.DrawFn) -> JsonObject:
    return {draw(st.text(max_size=8)): draw(json_values) for _ in range(draw(st.integers(0, 4)))}


documents = mangled() | nonsense()


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    base = {plane.name: plane for plane in settled().capture().planes}
    planes: list[CapturedPlane] = []
    for plane in base.values():
        readings = {
            plural: Reading(
                draw(st.sampled_from(Access)),
                (*plane.reading(plural).items, *draw(st.lists(documents, max_size=2))),
                draw(st.none() | st.just(NOW)),
                is_partial=draw(st.booleans()),
            )
            for plural in KINDS[plane.role]
        }
        planes.append(CapturedPlane(plane.name, plane.role, readings=readings))
    return Capture("shop", NOW, tuple(planes))


@pytest.mark.spec("WY-03")
@settings(max_examples=60)
@given(capture=captures(), name=st.sampled_from(["web", "other", ""]))
def test_no_input_raises_and_every_answer_can_be_rendered(capture: Capture, name: str) -> None:
    now = datetime(2026, 3, 1, 14, 5, tzinfo=UTC)
    answer = explain(decode(capture), now, Subject(name))
    assert render_why(answer, 100)
    assert document_of(answer)["kind"] == "Diagnosis"
