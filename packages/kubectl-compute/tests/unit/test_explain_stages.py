"""Each stage, stopped by one document that is not as it should be."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from kubectl_worlds import (
    HUB_NAMESPACE,
    START,
    Planes,
    at,
    block_deployment,
    block_instance,
    condition,
    edit_workload,
    everywhere,
    find,
    instance,
    part,
    scale,
    set_condition,
    settled,
    wrote,
)

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_kubectl.explain.causes import Actionability
from compute_kubectl.explain.diagnosis import Verdict
from compute_kubectl.explain.stages import STAGES, Stage
from compute_kubectl.render.text import render_why
from compute_kubectl.snapshot.access import Access

EDITED = 300


def not_planned(planes: Planes) -> None:
    edit_workload(planes, EDITED, 3)


def not_placed(planes: Planes) -> None:
    not_planned(planes)
    planned(planes)
    one = planes.project["workloaddeployments"][0]
    metadata = part(one, "metadata")
    metadata["finalizers"] = []
    metadata["annotations"] = {}
    planes.hub["workloaddeployments"] = planes.hub["workloaddeployments"][1:]
    planes.cells["dfw-1"]["workloaddeployments"] = []


def planned(planes: Planes) -> None:
    part(planes.project["workloads"][0], "status")["observedGeneration"] = 2
    for one in planes.project["workloaddeployments"]:
        scale(one, 3, 2, EDITED)


def not_federated(planes: Planes) -> None:
    not_planned(planes)
    planned(planes)


def federated(planes: Planes) -> None:
    not_federated(planes)
    for one in planes.hub["workloaddeployments"]:
        scale(one, 3, 2, EDITED)
        part(one, "metadata", "annotations")[labels.PROJECT_GENERATION] = "2"


def not_claimed(planes: Planes) -> None:
    federated(planes)
    planes.hub["propagationpolicies"] = []


def not_scheduled(planes: Planes) -> None:
    federated(planes)
    one = planes.hub["resourcebindings"][0]
    set_condition(one, condition("Scheduled", "False", "NoClusterFit", "0/2 clusters fit", 310))


def not_applied(planes: Planes) -> None:
    federated(planes)
    one = planes.hub["resourcebindings"][0]
    part(one, "status")["aggregatedStatus"] = [{"clusterName": "dfw-1", "applied": False}]


def not_delivered(planes: Planes) -> None:
    federated(planes)


def delivered(planes: Planes) -> None:
    federated(planes)
    for cell in ("dfw-1", "ord-1"):
        one = planes.cells[cell]["workloaddeployments"][0]
        scale(one, 3, 2, EDITED)
        part(one, "metadata", "annotations")[labels.KARMADA_TEMPLATE_GENERATION] = "2"


def not_acted_on(planes: Planes) -> None:
    delivered(planes)


def not_released(planes: Planes) -> None:
    stopped = condition("QuotaGranted", "Unknown", "PendingEvaluation", seconds=EDITED)
    block_instance(planes, "web-main-dfw-1", stopped, gates=("Quota",))


def not_running(planes: Planes) -> None:
    starting = condition("Available", "False", "Starting", seconds=EDITED)
    block_instance(planes, "web-main-dfw-1", starting)


def not_reported(planes: Planes) -> None:
    real = find(planes.cells["dfw-1"]["instances"], "web-main-dfw-1")
    for one in (planes.hub, planes.project):
        shown = find(one["instances"], "web-main-dfw-1")
        set_condition(shown, condition("Ready", "False", "Starting", seconds=EDITED))
    set_condition(real, condition("Ready", "True", "Available", seconds=EDITED + 10))


def not_shown(planes: Planes) -> None:
    shown = find(planes.project["instances"], "web-main-dfw-1")
    set_condition(shown, condition("Ready", "False", "Starting", seconds=EDITED))


STOPS: dict[Stage, Callable[[Planes], None]] = {
    Stage.PLANNED: not_planned,
    Stage.PLACED: not_placed,
    Stage.FEDERATED: not_federated,
    Stage.CLAIMED: not_claimed,
    Stage.SCHEDULED: not_scheduled,
    Stage.APPLIED: not_applied,
    Stage.DELIVERED: not_delivered,
    Stage.ACTED_ON: not_acted_on,
    Stage.RELEASED: not_released,
    Stage.RUNNING: not_running,
    Stage.REPORTED: not_reported,
    Stage.SHOWN: not_shown,
}


def test_a_settled_workload_is_ready_in_every_city() -> None:
    answer = settled().explain()
    assert answer.verdict is Verdict.READY
    assert [(city.city, city.ready, city.desired) for city in answer.cities] == [
        ("DFW", 2, 2),
        ("ORD", 2, 2),
    ]
    assert answer.contradictions == ()


@pytest.mark.parametrize("stage", Stage, ids=lambda one: one.label)
def test_the_first_stage_that_is_not_passed_is_named(stage: Stage) -> None:
    planes = settled()
    STOPS[stage](planes)
    city = planes.city()
    assert city.finding is not None
    assert (city.verdict, city.finding.stage) == (Verdict.WAITING, stage)
    assert city.finding.evidence != ()
    assert city.finding.owner
    assert planes.explain().verdict is Verdict.WAITING


@pytest.mark.parametrize("stage", list(Stage)[:8], ids=lambda one: one.label)
def test_it_is_named_too_where_the_planes_after_it_cannot_be_read(stage: Stage) -> None:
    planes = settled()
    STOPS[stage](planes)
    planes.hide("dfw-1", access=Access.UNREACHABLE)
    if stage <= Stage.PLACED:
        planes.hide("hub", access=Access.REFUSED)
    city = planes.city()
    assert city.finding is not None
    if stage >= Stage.DELIVERED:  # those are about the cell itself
        assert city.verdict is Verdict.NOT_VISIBLE
        assert city.finding.stage is Stage.DELIVERED
    else:
        assert (city.verdict, city.finding.stage) == (Verdict.WAITING, stage)


@pytest.mark.parametrize("stage", Stage, ids=lambda one: one.label)
@pytest.mark.spec("WY-08")
def test_a_wait_is_transient_up_to_the_limit_and_stalled_after_it(stage: Stage) -> None:
    planes = settled()
    STOPS[stage](planes)
    finding = planes.city().finding
    assert finding is not None
    assert finding.since is not None
    limit = STAGES[stage].within
    for offset, expected in (
        (timedelta(), Actionability.TRANSIENT),
        (limit, Actionability.TRANSIENT),
        (limit + timedelta(microseconds=1), Actionability.STALLED),
    ):
        city = planes.city(now=finding.since + offset)
        assert city.actionability is expected
        assert city.age == offset


@pytest.mark.spec("WY-08")
def test_an_age_is_never_negative_when_clocks_differ() -> None:
    planes = settled()
    STOPS[Stage.RUNNING](planes)
    city = planes.city(now=START)
    assert city.age == timedelta()
    assert city.actionability is Actionability.TRANSIENT


@pytest.mark.spec("WY-08")
def test_a_time_of_the_schema_is_not_taken_for_an_observation() -> None:
    planes = settled()
    starting = condition("Available", "Unknown", "Pending")
    starting["lastTransitionTime"] = "1970-01-01T00:00:00Z"
    block_instance(planes, "web-main-dfw-0", starting)
    finding = planes.city().finding
    assert finding is not None
    assert finding.since == START


def test_the_network_gate_has_its_own_limit() -> None:
    planes = settled()
    granted = condition("QuotaGranted", "True", "QuotaAvailable")
    block_instance(
        planes, "web-main-dfw-0", granted, gates=("Network",), ready="SchedulingGatesPresent"
    )
    finding = planes.city().finding
    assert finding is not None
    assert finding.since is not None
    after = planes.city(now=finding.since + timedelta(minutes=15))
    assert after.actionability is Actionability.TRANSIENT
    later = planes.city(now=finding.since + timedelta(minutes=15, seconds=1))
    assert later.actionability is Actionability.STALLED


def test_a_missing_slot_is_held_while_another_is_in_flight() -> None:
    planes = settled(replicas=3)
    for documents in (planes.project, planes.hub, planes.cells["dfw-1"]):
        documents["instances"] = [
            one
            for one in documents["instances"]
            if part(one, "metadata")["name"] != "web-main-dfw-2"
        ]
    missing = planes.city().finding
    assert missing is not None
    assert missing.stage is Stage.ACTED_ON
    assert "slot 2 has no Instance" in missing.text
    STOPS[Stage.RUNNING](planes)
    held = planes.city().finding
    assert held is not None
    assert (held.stage, held.ordinal) == (Stage.RUNNING, 1)


def test_the_number_of_an_autoscaler_counts_and_not_the_least() -> None:
    planes = settled(replicas=3)
    metrics: JsonObject = {
        "minReplicas": 1,
        "maxReplicas": 5,
        "metrics": [{"resource": {"name": "cpu", "target": {"averageUtilization": 70}}}],
    }
    placements = part(planes.project["workloads"][0], "spec")["placements"]
    assert isinstance(placements, list)
    part(placements[0], "scaleSettings").update(metrics)
    for one in planes.every("workloaddeployments"):
        part(one, "spec", "scaleSettings").update(metrics)
    city = planes.city()
    assert (city.desired, city.ready) == (3, 3)
    for documents in (planes.project, planes.hub, planes.cells["dfw-1"]):
        documents["instances"] = [
            one
            for one in documents["instances"]
            if part(one, "metadata")["name"] != "web-main-dfw-2"
        ]
    missing = planes.city().finding
    assert missing is not None
    assert "slot 2 has no Instance" in missing.text


def test_an_instance_of_an_older_template_is_waited_for() -> None:
    planes = settled()

    def age(one: object) -> None:
        part(one, "spec", "controller")["templateHash"] = "v1-0000000000000000"  # type: ignore[arg-type]

    everywhere(planes, "web-main-dfw-1", age)
    finding = planes.city().finding
    assert finding is not None
    assert (finding.stage, "slot 1 runs an older template" in finding.text) == (
        Stage.ACTED_ON,
        True,
    )


MISSING = 'Secret "db" not found in namespace "shop"'
KEEPS = 'Instance "web-main-dfw-1" keeps running the former template'


def hold_roll(planes: Planes, reason: str, message: str) -> None:
    """The data of a new template has not arrived: its Instances stay of the former one, Ready."""

    def age(one: JsonObject) -> None:
        part(one, "spec", "controller")["templateHash"] = "v1-0000000000000000"

    everywhere(planes, "web-main-dfw-1", age)
    block_deployment(planes, "DFW", reason, f"{KEEPS}: {message}")


@pytest.mark.parametrize("reads_cell", [True, False])
def test_a_roll_that_waits_for_a_missing_secret_names_the_condition(reads_cell: bool) -> None:
    planes = settled()
    hold_roll(planes, "SourceNotFound", MISSING)
    shown = find(planes.project["workloaddeployments"], "web-main-dfw")
    held = condition("ReferencedDataReady", "False", "SourceNotFound", MISSING, 50)
    set_condition(shown, held)
    if not reads_cell:
        planes.only_project()
    answer = planes.explain()
    finding = answer.finding
    assert finding is not None
    assert (finding.stage, finding.reason) == (Stage.RELEASED, "SourceNotFound")
    assert (finding.condition_type, finding.status) == ("ReferencedDataReady", "False")
    assert (finding.message, answer.actionability) == (MISSING, Actionability.USER)
    assert finding.text == (
        "slot 1 keeps running the former template: ReferencedDataReady is False SourceNotFound"
    )
    text = "\n".join(render_why(answer, 160))
    assert MISSING in text
    assert "ReferencedDataReady=False SourceNotFound" in text
    assert "No cause is reported" not in text


def test_a_roll_that_waits_for_data_on_its_way_names_what_the_cell_reports() -> None:
    planes = settled()
    waits = "Waiting for 1 companion(s) to arrive on cell: Secret/db"
    hold_roll(planes, "ReferencedDataNotReady", waits)
    answer = planes.explain(START + timedelta(hours=1))
    finding = answer.finding
    assert finding is not None
    assert (finding.stage, finding.reason) == (Stage.RELEASED, "ReferencedDataNotReady")
    assert finding.message == f"{KEEPS}: {waits}"
    assert answer.actionability is Actionability.STALLED
    text = "\n".join(render_why(answer, 160))
    assert waits in text
    assert "No cause is reported" not in text
    assert "ReferencedDataNotReady lasts longer than usual" in text


def test_a_roll_is_not_held_by_data_that_is_ready() -> None:
    planes = settled()
    hold_roll(planes, "InstancesProvisioning", "1 of 2")
    shown = find(planes.project["workloaddeployments"], "web-main-dfw")
    set_condition(shown, condition("ReferencedDataReady", "True", "Ready", "All 1", 50))
    finding = planes.city().finding
    assert finding is not None
    assert (finding.stage, finding.reason) == (Stage.ACTED_ON, "")


def test_of_two_instances_the_more_specific_cause_is_named() -> None:
    planes = settled()
    exceeded = condition("QuotaGranted", "False", "QuotaExceeded", "no quota", 60)
    block_instance(planes, "web-main-dfw-0", exceeded, gates=("Quota",), ready="PendingQuota")
    crashing = condition("Available", "False", "InstanceCrashing", "exit 1", 90)
    block_instance(planes, "web-main-dfw-1", crashing)
    city = planes.city()
    assert city.finding is not None
    assert (city.finding.reason, city.finding.ordinal) == ("InstanceCrashing", 1)
    assert [one.reason for one in city.others] == ["QuotaExceeded"]


def test_a_cause_beats_a_stall_in_another_city() -> None:
    planes = settled()
    crashing = condition("Available", "False", "InstanceCrashing", "exit 1", 90)
    block_instance(planes, "web-main-ord-1", crashing)
    planes.hub["propagationpolicies"] = []
    scale(planes.project["workloaddeployments"][0], 2, 2, EDITED)
    answer = planes.explain()
    assert answer.finding is not None
    assert answer.finding.reason == "InstanceCrashing"
    assert answer.actionability is Actionability.USER


def test_two_cells_of_one_city_are_two_lines() -> None:
    planes = settled(cities={"DFW": "dfw-1"})
    twin = settled(cities={"DFW": "dfw-2"})
    planes.cells["dfw-2"] = twin.cells["dfw-2"]
    planes.hub["clusters"] += twin.hub["clusters"]
    planes.hub["instances"] += [instance("DFW", n, HUB_NAMESPACE, cell="dfw-2") for n in (0, 1)]
    bound = planes.hub["resourcebindings"][0]
    part(bound, "spec")["clusters"] = [{"name": "dfw-1"}, {"name": "dfw-2"}]
    answer = planes.explain()
    assert [city.cell for city in answer.cities] == ["dfw-1", "dfw-2"]
    assert any("AmbiguousCity" in one.text for one in answer.contradictions)


def test_a_hashed_deployment_name_is_found_by_identity() -> None:
    planes = settled(cities={"DFW": "dfw-1"})
    for one in planes.every("workloaddeployments"):
        part(one, "metadata")["name"] = "web-main-dfw-0123456789"
    for one in planes.every("instances"):
        name = str(part(one, "metadata")["name"])
        part(one, "metadata")["name"] = name.replace("-dfw-", "-dfw-0123456789-")
        part(one, "metadata", "labels")[labels.WORKLOAD_DEPLOYMENT_NAME] = "web-main-dfw-0123456789"
    for one in planes.hub["resourcebindings"]:
        part(one, "spec", "resource")["name"] = "web-main-dfw-0123456789"
    assert planes.explain().verdict is Verdict.READY


def test_a_single_cluster_has_no_stages_of_the_hub() -> None:
    planes = settled(cities={"DFW": "dfw-1"})
    planes.hide("hub", "dfw-1")
    one = planes.project["workloaddeployments"][0]
    metadata = part(one, "metadata")
    metadata["finalizers"], metadata["annotations"] = [], {}
    metadata["managedFields"] = [
        wrote("compute-workload", "spec"),
        wrote(labels.DEPLOYMENT_MANAGER, "status", subresource="status"),
    ]
    assert planes.explain().verdict is Verdict.READY
    STOPS[Stage.RUNNING](planes)
    finding = planes.city().finding
    assert finding is not None
    assert finding.stage is Stage.RUNNING


def test_a_deletion_names_what_is_left_and_its_finalizer() -> None:
    planes = settled(cities={"DFW": "dfw-1"})
    part(planes.project["workloads"][0], "metadata")["deletionTimestamp"] = at(400)
    part(planes.project["workloaddeployments"][0], "metadata")["deletionTimestamp"] = at(401)
    answer = planes.explain()
    assert answer.verdict is Verdict.DELETING
    assert answer.finding is not None
    assert "2 Instance on dfw-1" in answer.finding.text
    planes.cells["dfw-1"] = {"workloaddeployments": [], "instances": []}
    planes.hub["instances"], planes.hub["workloaddeployments"] = [], []
    planes.project["instances"] = []
    later = planes.explain().finding
    assert later is not None
    assert labels.FEDERATION_FINALIZER in later.text


def test_a_removed_city_waits_for_the_deletion_of_its_deployment() -> None:
    planes = settled()
    placements = part(planes.project["workloads"][0], "spec")["placements"]
    assert isinstance(placements, list)
    part(placements[0])["cityCodes"] = ["DFW"]
    city = planes.city("ORD")
    assert city.finding is not None
    assert city.finding.stage is Stage.PLANNED
    assert city.desired == 0


def test_without_the_project_the_hub_is_judged() -> None:
    planes = settled().hide("project", access=Access.REFUSED)
    assert planes.explain().verdict is Verdict.READY
    STOPS[Stage.RUNNING](planes)
    answer = planes.explain()
    assert answer.verdict is Verdict.WAITING
    assert answer.finding is not None
    assert answer.finding.stage is Stage.RUNNING


def test_an_object_that_does_not_parse_leaves_the_rest() -> None:
    planes = settled()
    find(planes.cells["dfw-1"]["instances"], "web-main-dfw-0")["spec"] = "nonsense"
    assert planes.city("ORD").verdict is Verdict.READY
    planes.project["workloads"][0]["spec"] = ["nonsense"]
    answer = planes.explain()
    assert answer.verdict is Verdict.WAITING
    assert answer.finding is not None
    assert "unreadable" in answer.finding.text


def test_an_absent_workload_offers_similar_names() -> None:
    answer = settled().explain(name="wbe")
    assert (answer.verdict, answer.similar) == (Verdict.NOT_FOUND, ("web",))
