"""Every reason that a user can meet has a snapshot whose diagnosis names it."""

import pytest
from kubectl_worlds import (
    Planes,
    at,
    block_deployment,
    block_instance,
    condition,
    document,
    edit_workload,
    find,
    part,
    set_condition,
    settled,
)

from compute_api_types import catalogue, conditions, labels, reasons
from compute_api_types.wire import JsonObject
from compute_kubectl.explain.causes import CAUSES, Actionability, is_cause
from compute_kubectl.explain.stages import Owner, Stage
from compute_kubectl.render.text import render_why

# Reasons of a status that is as it should be: nothing is blocked by them.
SOUND = {reason for row in catalogue.CONDITIONS if row.status == "True" for reason in row.reasons}
# Summaries that name no cause of their own: the finding below them is shown instead.
SUMMARIES = {
    reasons.NO_AVAILABLE_DEPLOYMENTS,
    reasons.NO_AVAILABLE_PLACEMENTS,
    reasons.QUOTA_NOT_GRANTED,
    reasons.PENDING_QUOTA,
    reasons.SCHEDULING_GATES_PRESENT,
    reasons.ALL_CELLS_REPORT,
}
OF_PROJECT_EVENTS = {
    reason
    for row in catalogue.EVENTS
    if row.on in {"Workload", "WorkloadDeployment in a project"}
    for reason in row.warning
}


def user_reasons() -> list[str]:
    """Reasons of conditions that are not True, and of warnings in a project. Those of autoscaling
    never become the reason of `Ready` (autoscaling.md 4).
    """
    rows = [row for row in catalogue.CONDITIONS if row.type not in conditions.AUTOSCALING]
    shown = {reason for row in rows for reason in row.reasons}
    quarantine = {reason.event for reason in reasons.QuarantineReason}
    every = shown | OF_PROJECT_EVENTS | quarantine
    return sorted(every - SOUND - SUMMARIES)


def world_with(reason: str) -> Planes:
    """A snapshot in which this reason is what blocks the Workload in DFW."""
    planes = settled()
    cause = CAUSES[reason]
    if reason in {one.event for one in reasons.QuarantineReason}:
        return quarantined(planes, reason)
    if reason in OF_PROJECT_EVENTS and cause.stage is Stage.FEDERATED:
        return with_event(planes, reason)
    if cause.stage is Stage.PLANNED:
        return refused(planes, reason)
    if reason in {reasons.CELLS_SILENT, reasons.NO_CELL_PLACED}:
        return silent(planes, reason)
    if reason == reasons.TERMINATING:
        part(planes.project["workloads"][0], "metadata")["deletionTimestamp"] = at(60)
        return planes
    if reason == reasons.DELETION_BLOCKED:
        part(planes.project["workloads"][0], "metadata")["deletionTimestamp"] = at(60)
        for one in planes.every("instances"):
            set_condition(one, condition("Ready", "False", reason, "finalizer x/y"))
        return planes
    if cause.stage is Stage.ACTED_ON:
        if reason == reasons.INSTANCES_PROVISIONING:
            block_deployment(planes, "DFW", reason, "1 of 2")
        else:
            block_deployment(planes, "DFW", reason, f"because of {reason}")
        return planes
    return at_instance(planes, reason)


def at_instance(planes: Planes, reason: str) -> Planes:
    network = {reasons.NETWORK_FAILED_TO_CREATE, reasons.NETWORK_PROVISIONING}
    data = {
        shown
        for row in catalogue.INSTANCE_CONDITIONS
        if row.type == "ReferencedDataReady"
        for shown in row.reasons
    }
    name = "web-main-dfw-0"
    if reason in network:
        held = condition("Ready", "False", reason, f"because of {reason}", 60)
        block_instance(planes, name, held, gates=(labels.NETWORK_GATE,))
    elif reason in data:
        held = condition("ReferencedDataReady", "False", reason, f"because of {reason}", 60)
        block_instance(planes, name, held, gates=("ReferencedData",))
    elif CAUSES[reason].stage is Stage.RELEASED:
        held = condition("QuotaGranted", "False", reason, f"because of {reason}", 60)
        block_instance(planes, name, held, gates=(labels.QUOTA_GATE,), ready="PendingQuota")
    else:
        for kind in ("Programmed", "Available"):
            stopped = condition(kind, "False", reason, f"because of {reason}", 60)
            block_instance(planes, name, stopped)
    return planes


def refused(planes: Planes, reason: str) -> Planes:
    edit_workload(planes, 60, 3)
    one = planes.project["workloads"][0]
    if reason == reasons.DEPLOYMENT_REJECTED:
        planes.project["events"].append(event(one, reason))
    else:
        set_condition(one, condition("Ready", "False", reason, f"because of {reason}", 61))
    return planes


def with_event(planes: Planes, reason: str) -> Planes:
    planes.hub["workloaddeployments"] = planes.hub["workloaddeployments"][1:]
    planes.cells["dfw-1"]["workloaddeployments"] = []
    planes.cells["dfw-1"]["instances"] = []
    one = find(planes.project["workloaddeployments"], "web-main-dfw")
    planes.project["events"].append(event(one, reason))
    return planes


def event(about: JsonObject, reason: str) -> JsonObject:
    metadata = part(about, "metadata")
    one = document("Event", f"{metadata['name']}.1", "shop")
    involved: JsonObject = {
        "kind": about["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {
        **one,
        "involvedObject": involved,
        "reason": reason,
        "message": f"because of {reason}",
        "type": "Warning",
        "lastTimestamp": at(70),
        "firstTimestamp": at(65),
    }


def quarantined(planes: Planes, reason: str) -> Planes:
    word = next(one.value for one in reasons.QuarantineReason if one.event == reason)
    copy = find(planes.hub["instances"], "web-main-dfw-0")
    annotations = part(copy, "metadata", "annotations")
    annotations[labels.QUARANTINE_REASON] = word
    annotations[labels.QUARANTINE_MESSAGE] = f"because of {reason}"
    return planes


def silent(planes: Planes, reason: str) -> Planes:
    planes.hide("dfw-1")
    copy = find(planes.hub["workloaddeployments"], "web-main-dfw")
    part(copy, "status")["observedGeneration"] = 0
    set_condition(copy, condition("CellsReporting", "False", reason, "dfw-1"))
    return planes


@pytest.mark.spec("WY-01")
def test_every_reason_a_user_can_meet_is_in_the_table_of_causes() -> None:
    assert [reason for reason in user_reasons() if reason not in CAUSES] == []
    assert all(reason in reasons.MEANINGS for reason in CAUSES)


@pytest.mark.spec("WY-01")
@pytest.mark.parametrize("reason", user_reasons())
def test_its_diagnosis_names_the_reason_its_stage_its_owner_and_what_to_do(reason: str) -> None:
    planes = world_with(reason)
    city = planes.city()
    finding = city.finding
    assert finding is not None
    assert finding.reason == reason
    cause = CAUSES[reason]
    if reason not in {reasons.TERMINATING, reasons.DELETION_BLOCKED, reasons.NO_CELL_PLACED}:
        stages = {cause.stage}
        if reason == reasons.INSTANCES_PROVISIONING:
            stages = {Stage.ACTED_ON, Stage.RUNNING}  # a summary: where the Instances are
        assert finding.stage in stages
    assert finding.owner
    expected = {cause.turn} if cause.turn else {Actionability.TRANSIENT, Actionability.STALLED}
    assert city.actionability in expected
    text = "\n".join(render_why(planes.explain(), 10_000))
    assert reason in text
    if is_cause(reason):
        assert reasons.MEANINGS[reason].act in text


@pytest.mark.spec("WY-01")
def test_a_reason_of_a_later_release_is_passed_through() -> None:
    planes = settled()
    stopped = condition("Available", "False", "SomethingNew", "of a later release", 60)
    block_instance(planes, "web-main-dfw-0", stopped)
    finding = planes.city().finding
    assert finding is not None
    assert (finding.reason, finding.owner) == ("SomethingNew", Owner.PROVIDER)
    assert conditions.rank("SomethingNew") == 0
