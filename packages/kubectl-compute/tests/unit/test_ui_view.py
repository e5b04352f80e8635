"""What the page shows of a snapshot, and what its panels narrow to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from kubectl_worlds import (
    NOW,
    START,
    Planes,
    block_instance,
    cluster,
    condition,
    find,
    part,
    set_condition,
    settled,
)

from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.planes import Snapshot
from compute_kubectl.ui.documents import page_document
from compute_kubectl.ui.panels import PanelError, panel_document
from compute_kubectl.ui.places import PLACES, place_of
from compute_kubectl.ui.view import MOST_INSTANCES, MOST_WORKLOADS, State, view_of

HOSTILE = "<script>alert(1)</script>\x1b[31mred\u202e\nnext"


def page_of(planes: Planes) -> JsonObject:
    return page_document(view_of(planes.snapshot(), NOW))


def listed(document: JsonObject, name: str) -> list[JsonObject]:
    value = document[name]
    assert isinstance(value, list)
    return [one for one in value if isinstance(one, dict)]


def texts(value: JsonValue) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [text for one in value for text in texts(one)]
        case dict():
            return [text for one in value.values() for text in texts(one)]
        case _:
            return []


def test_settled_planes_show_every_city_ready() -> None:
    view = view_of(settled().snapshot(), NOW)
    assert [(one.code, one.state, one.ready, one.total) for one in view.cities] == [
        ("DFW", State.READY, 2, 2),
        ("ORD", State.READY, 2, 2),
    ]
    assert [cell.state for city in view.cities for cell in city.cells] == [State.READY] * 2
    assert not view.contradictions
    assert not view.unread


def test_an_unreachable_cluster_turns_its_city_alone() -> None:
    planes = settled()
    away = condition("Ready", "False", "ClusterNotReachable", seconds=90)
    set_condition(find(planes.hub["clusters"], "ord-1"), away)
    dallas, chicago = view_of(planes.snapshot(), NOW).cities
    assert dallas.state is State.READY
    assert (chicago.state, chicago.words) == (State.UNREACHABLE, "Unreachable")
    assert chicago.since == START + timedelta(seconds=90)
    assert "ClusterNotReachable" in chicago.cells[0].words


def test_one_of_two_cells_away_is_named_in_the_words_of_the_city() -> None:
    planes = settled()
    planes.hub["clusters"].append(cluster("ord-2", "ORD"))
    set_condition(planes.hub["clusters"][-1], condition("Ready", "Unknown", "ClusterStatusUnknown"))
    chicago = view_of(planes.snapshot(), NOW).cities[1]
    assert chicago.words == "1 of 2 cells unreachable"


def test_what_blocks_an_instance_is_shown_since_when_and_first() -> None:
    planes = settled()
    block_instance(
        planes,
        "web-main-dfw-1",
        condition("QuotaGranted", "False", "QuotaExceeded", "no vCPU left", 60),
        gates=("Quota",),
    )
    dallas = view_of(planes.snapshot(), NOW).cities[0]
    blocked = dallas.workloads[0].instances[0]
    assert (blocked.name, blocked.reason) == ("web-main-dfw-1", "QuotaExceeded")
    assert blocked.since == START + timedelta(seconds=60)
    assert dallas.state is State.WAITING
    assert dallas.workloads[0].stage == 9
    assert dallas.workloads[0].turn == "your turn"


def test_a_project_alone_is_enough_for_cities_and_instances() -> None:
    view = view_of(settled().only_project().snapshot(), NOW)
    assert [one.code for one in view.cities] == ["DFW", "ORD"]
    assert all(one.workloads[0].instances for one in view.cities)
    assert all(one.state in {State.READY, State.HIDDEN} for one in view.cities)


def test_a_later_read_of_the_same_objects_gives_the_same_document() -> None:
    planes = settled().hide("ord-1", access=Access.UNREACHABLE)
    first = planes.snapshot()
    later = _read_later(first, timedelta(seconds=30))
    silent = {"ord-1": first.at}
    assert page_document(view_of(first, NOW, silent)) == page_document(view_of(later, NOW, silent))


def _read_later(snapshot: Snapshot, by: timedelta) -> Snapshot:
    cells = {
        name: replace(one, facts=replace(one.facts, at=snapshot.at + by))
        for name, one in snapshot.cells.items()
    }
    return replace(snapshot, at=snapshot.at + by, cells=cells)


def test_every_text_is_one_line_without_control_or_override_characters() -> None:
    planes = settled()
    block_instance(planes, "web-main-dfw-0", condition("Programmed", "False", "Pending", HOSTILE))
    snapshot = planes.snapshot()
    parameters = {"workload": "web"}
    documents = [page_of(planes)]
    documents += [
        panel_document(kind, snapshot, NOW, parameters) for kind in ("why", "timeline", "tree")
    ]
    found = [text for one in documents for text in texts(one)]
    assert any("<script>" in text for text in found), "the message is shown, and not as markup"
    assert all(text.isprintable() for text in found)


def test_workloads_and_instances_beyond_the_limits_are_counted() -> None:
    planes = settled(replicas=MOST_INSTANCES + 3)
    template = planes.project["workloads"][0]
    for number in range(MOST_WORKLOADS + 4):
        copy: JsonObject = {**template, "metadata": dict(part(template, "metadata"))}
        part(copy, "metadata").update({"name": f"w{number:04}", "uid": f"uid-{number}"})
        planes.project["workloads"].append(copy)
    view = view_of(planes.snapshot(), NOW)
    assert view.more == 5
    alone = view_of(settled(replicas=MOST_INSTANCES + 3).snapshot(), NOW)
    assert (len(alone.cities[0].workloads[0].instances), alone.cities[0].workloads[0].more) == (
        MOST_INSTANCES,
        3,
    )


def test_panels_of_an_instance_are_of_its_cell_and_not_of_a_namesake() -> None:
    planes = settled(cities={"ORD": "ord-1"})
    planes.cells["ord-2"] = planes.copy().cells["ord-1"]
    planes.hub["clusters"].append(cluster("ord-2", "ORD"))
    crashing = condition("Ready", "False", "InstanceCrashing", "exit code 1", 60)
    set_condition(find(planes.cells["ord-2"]["instances"], "web-main-ord-0"), crashing)
    snapshot = planes.snapshot()
    asked = {"workload": "web", "city": "ORD", "instance": "web-main-ord-0"}
    for cell, is_crashing in (("ord-1", False), ("ord-2", True)):
        why = panel_document("why", snapshot, NOW, {**asked, "cell": cell})
        shown = why["instance"]
        assert isinstance(shown, dict)
        assert shown["plane"] == cell
        assert ("InstanceCrashing" in str(shown["conditions"])) is is_crashing
        assert [one["cell"] for one in listed(why, "cities")] == [cell]
        other = {"ord-1": "ord-2", "ord-2": "ord-1"}[cell]
        timeline = panel_document("timeline", snapshot, NOW, {**asked, "cell": cell})
        planes_shown = {str(one["plane"]) for one in listed(timeline, "moments")}
        assert cell in planes_shown
        assert other not in planes_shown
        assert other not in str(panel_document("tree", snapshot, NOW, {**asked, "cell": cell}))


def test_each_cell_of_a_city_has_its_own_turn() -> None:
    planes = settled()
    block_instance(
        planes, "web-main-dfw-1", condition("QuotaGranted", "False", "QuotaExceeded", "", 60)
    )
    why = panel_document("why", planes.snapshot(), NOW, {"workload": "web"})
    assert {one["cityCode"]: one["turn"] for one in listed(why, "cities")} == {
        "DFW": "your turn",
        "ORD": "",
    }


def test_a_panel_of_something_absent_is_a_clear_error() -> None:
    snapshot = settled().snapshot()
    with pytest.raises(PanelError, match="workload nothing is not visible any more"):
        panel_document("why", snapshot, NOW, {"workload": "nothing"})
    with pytest.raises(PanelError, match="instance nothing is not there any more"):
        panel_document("why", snapshot, NOW, {"workload": "web", "instance": "nothing"})
    with pytest.raises(PanelError, match="no such panel"):
        panel_document("logs", snapshot, NOW, {"workload": "web"})


def test_commands_offered_are_quoted() -> None:
    snapshot = replace(settled().snapshot(), namespace="a b;c")
    why = panel_document("why", snapshot, NOW, {"workload": "web"})
    assert why["command"] == "kubectl compute why workload web -n 'a b;c'"


def test_places_are_on_the_map() -> None:
    assert all(-90 < one.latitude < 90 and -180 < one.longitude < 180 for one in PLACES.values())
    dallas = place_of("dfw")
    assert dallas is not None
    assert dallas.name == "Dallas"
    assert place_of("XXX") is None
