"""The mirrored status of a deployment, row by row of the mirror's table."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from management_builders.federation import (
    COPY_KEY,
    KEY,
    NOW,
    a_condition,
    a_copy,
    a_deployment,
    a_moment,
    a_report,
)

from compute_api_types import labels, reasons
from compute_api_types.conditions import Statement
from compute_management_operator.hub.delays import REPORT_PATIENCE
from compute_management_operator.hub.federation.observe import (
    FederationMemory,
    ObservedDeployment,
    ProjectDeployment,
)
from compute_management_operator.hub.federation.status import (
    has_report,
    report,
    translate_generation,
)
from compute_management_operator.hub.referenced_data.expectation import (
    NO_DATA,
    UNSTATED,
    DataExpectation,
)
from compute_operator_kit.core.errors import InvalidSpecError, UnavailableError
from compute_operator_kit.core.json import Json, JsonObject, decode_json_object, encode, member_list
from compute_operator_kit.core.keys import ObjectKey, PlaneName
from compute_operator_kit.core.objects import Absent, Unreadable
from compute_operator_kit.intents.intents import (
    Ensure,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
    SetStatus,
)
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome

NOTHING_APPLIED = Applied()
YOUNG = "2026-06-20T08:59:10Z"


def reported(seen: ObservedDeployment) -> Plan:
    return report(seen, NOTHING_APPLIED, NOW)


def status_in(planned: Plan) -> SetStatus:
    (status,) = [intent for intent in planned if isinstance(intent, SetStatus)]
    return status


def written_in(planned: Plan) -> JsonObject:
    """The status as it is sent."""
    return decode_json_object(encode(status_in(planned).status))


def conditions_in(planned: Plan) -> list[tuple[object, ...]]:
    return [
        (one["type"], one["status"], one["reason"], one["message"], one.get("observedGeneration"))
        for one in member_list(written_in(planned), "conditions")
        if isinstance(one, dict)
    ]


# --- untouched ------------------------------------------------------------------------------------


@pytest.mark.spec("M-61")
@pytest.mark.parametrize(
    "seen",
    [
        a_moment(deployment=Absent()),
        a_moment(deployment=a_deployment(is_deleting=True), copy=a_copy(status=a_report())),
        a_moment(copy=Absent()),
        a_moment(copy=a_copy(status=a_report(), is_deleting=True)),
        a_moment(copy=a_copy(status=a_report(), routed_to="LHR")),
        a_moment(deployment=a_deployment(has_finalizer=False), copy=a_copy(status=a_report())),
    ],
)
def test_what_was_last_known_stands(seen: ObservedDeployment) -> None:
    assert reported(seen) == Plan()


@pytest.mark.spec("M-61")
def test_young_copy_without_a_report_is_reconciled_again_at_sixty_seconds_of_age() -> None:
    seen = a_moment(copy=a_copy(created=YOUNG))
    left = timedelta(seconds=10)
    assert reported(seen) == Plan.of(RequeueAfter(KEY, reasons.CELL_REPORT_AWAITED, left))


@pytest.mark.spec("M-61")
def test_copy_created_by_this_reconcile_is_reconciled_again_after_sixty_seconds() -> None:
    seen = a_moment(copy=Absent())
    made = Ensure(seen.copy_key, OwnedFields(), reasons.NOT_FEDERATED, ignore_own_event=True)
    for effect, waits in ((Effect.WRITTEN, True), (Effect.HELD, False), (Effect.FAILED, False)):
        planned = report(seen, Applied((Outcome(made, effect),)), NOW)
        awaited = RequeueAfter(KEY, reasons.CELL_REPORT_AWAITED, REPORT_PATIENCE)
        assert planned == (Plan.of(awaited) if waits else Plan())


# --- of a former deployment -----------------------------------------------------------------------

FORMER = 'The former deployment of this name is still being deleted in city "DFW"'
NOTHING_WANTED = a_condition("Ready", "True", "ReplicasAvailable", "0/0 replicas available")


def a_former_report(echo: Json, *, cells: str = "dfw-1") -> JsonObject:
    return {**a_report(NOTHING_WANTED, cells=cells), "observedTemplateUID": echo}


@pytest.mark.spec("OU-05")
@pytest.mark.parametrize("cells", ["dfw-1", ""])
@pytest.mark.parametrize(
    ("echo", "created"),
    [("", YOUNG), ("", "2026-06-20T08:00:00Z"), ("hub-0", "2026-06-20T08:00:00Z")],
)
def test_the_status_of_a_former_deployment_never_counts(
    echo: str, created: str, cells: str
) -> None:
    copy = a_copy(status=a_former_report(echo, cells=cells), created=created)
    planned = reported(a_moment(copy=copy))
    stated = ("False", reasons.INSTANCES_PROVISIONING, FORMER, 0)
    assert conditions_in(planned) == [
        ("Available", *stated),
        ("ReplicasReady", *stated),
        ("Ready", *stated),
    ]
    written = status_in(planned).status
    assert (written["replicas"], written["desiredReplicas"]) == (0, 2)
    assert "observedTemplateUID" not in written


@pytest.mark.spec("OU-05")
def test_another_uid_alone_shows_nothing_for_sixty_seconds() -> None:
    # A hub that was rebuilt has new UIDs; the cell echoes the new one within moments.
    copy = a_copy(status=a_former_report("hub-0"), created=YOUNG)
    left = timedelta(seconds=10)
    assert reported(a_moment(copy=copy)) == Plan.of(
        RequeueAfter(KEY, reasons.CELL_REPORT_AWAITED, left)
    )


@pytest.mark.spec("OU-05")
def test_a_former_status_that_is_shown_already_is_not_written_again() -> None:
    seen = a_moment(copy=a_copy(status=a_former_report("")))
    shown = written_in(reported(seen))
    again = a_moment(deployment=a_deployment(status=shown), copy=seen.copy)
    assert written_in(reported(again)) == shown


@pytest.mark.spec("OU-05")
@pytest.mark.parametrize("echo", [None, "hub-wd", 7])
def test_a_status_of_this_deployment_or_of_an_older_cell_counts(echo: Json) -> None:
    status = a_former_report(echo)
    if echo is None:
        del status["observedTemplateUID"]
    planned = reported(a_moment(copy=a_copy(status=status)))
    assert ("Ready", "True", "ReplicasAvailable", "0/0 replicas available", 3) in conditions_in(
        planned
    )
    assert "observedTemplateUID" not in status_in(planned).status


# --- waiting --------------------------------------------------------------------------------------


@pytest.mark.spec("M-61")
@pytest.mark.parametrize("status", [{}, a_report(cells="", observed=0)])
def test_old_copy_without_a_report_is_waiting(status: JsonObject) -> None:
    stored: JsonObject = {
        "replicas": 7,
        "observedGeneration": 2,
        "location": {"name": "x", "namespace": ""},
        "conditions": [a_condition("Custom", "True", "Theirs")],
    }
    seen = a_moment(deployment=a_deployment(status=stored), copy=a_copy(status=status))
    planned = reported(seen)
    message = 'Waiting for a cell in city "DFW" to report'
    stated = ("False", reasons.INSTANCES_PROVISIONING, message, 2)
    assert conditions_in(planned) == [
        ("Custom", "True", "Theirs", "", None),
        ("Available", *stated),
        ("ReplicasReady", *stated),
        ("Ready", *stated),
    ]
    written = status_in(planned)
    assert written.status["replicas"] == 0
    assert written.status["desiredReplicas"] == 2
    assert written.status["observedGeneration"] == 2
    assert "location" not in written.status
    assert written.may_defer


@pytest.mark.spec("M-61")
def test_city_that_no_cluster_carries_is_reported() -> None:
    planned = reported(a_moment(serving_cells=()))
    message = 'No cell serves city code "DFW"'
    assert conditions_in(planned)[0][1:4] == ("False", reasons.NO_MATCHING_LOCATION, message)
    assert not status_in(planned).may_defer


def test_clusters_that_cannot_be_read_are_no_verdict() -> None:
    planned = reported(a_moment(serving_cells=Unreadable("NotSynced")))
    assert conditions_in(planned)[0][2] == reasons.INSTANCES_PROVISIONING


def test_copy_without_an_age_counts_as_old() -> None:
    assert conditions_in(reported(a_moment(copy=a_copy(created="")))) != []


@pytest.mark.parametrize("replicas", [-1, "many", None, 10_000_000])
@pytest.mark.fault("F1")
def test_replicas_that_bypassed_admission_do_not_break_the_wait(replicas: Json) -> None:
    deployment = a_deployment(min_replicas=replicas)
    assert status_in(reported(a_moment(deployment=deployment))).status["desiredReplicas"] == 0


# --- mirrored -------------------------------------------------------------------------------------

READY = a_condition("Ready", "True", "ReplicasAvailable", "2/2 replicas available")
STARTING = a_condition("Ready", "False", "InstancesProvisioning", "starting")


@pytest.mark.spec("M-62")
def test_report_is_mirrored_without_what_belongs_to_the_hub() -> None:
    stored: JsonObject = {"conditions": [a_condition("Custom", "True", "Theirs")]}
    seen = a_moment(deployment=a_deployment(status=stored), copy=a_copy(status=a_report(READY)))
    planned = reported(seen)
    assert conditions_in(planned) == [
        ("Custom", "True", "Theirs", "", None),
        ("Ready", "True", "ReplicasAvailable", "2/2 replicas available", 3),
    ]
    written = status_in(planned)
    assert (written.key, written.uid, written.resource_version) == (KEY, "project-wd", "40")
    assert written.status["observedGeneration"] == 3
    assert written.status["readyReplicas"] == 1
    assert written.status["location"] == {"name": "us-dallas-1", "namespace": ""}
    assert "observedTemplateGeneration" not in written.status
    assert not written.may_defer


@pytest.mark.spec("M-96")
def test_report_that_something_is_on_its_way_may_be_held_back_and_a_loss_may_not() -> None:
    copy = a_copy(status=a_report(STARTING))
    assert status_in(reported(a_moment(copy=copy))).may_defer
    stored: JsonObject = {"conditions": [READY]}
    lost = a_moment(deployment=a_deployment(status=stored), copy=copy)
    assert not status_in(reported(lost)).may_defer


@pytest.mark.spec("M-62")
def test_status_written_once_is_not_different_the_next_time() -> None:
    seen = a_moment(copy=a_copy(status=a_report(READY)))
    first = written_in(reported(seen))
    settled = replace(seen, deployment=a_deployment(status=first))
    later = report(settled, NOTHING_APPLIED, NOW + timedelta(hours=3))
    assert written_in(later) == first


def test_time_of_a_condition_moves_with_its_status_alone() -> None:
    def time_in(stored: JsonObject) -> object:
        deployment = a_deployment(status={"conditions": [stored]})
        seen = a_moment(deployment=deployment, copy=a_copy(status=a_report(READY)))
        (entry,) = member_list(written_in(reported(seen)), "conditions")
        assert isinstance(entry, dict)
        return entry["lastTransitionTime"]

    early = "2026-06-20T07:00:00Z"
    kept = a_condition("Ready", "True", "Other", since=early)
    assert time_in(kept) == early
    changed = a_condition("Ready", "False", "Other", since=early)
    assert time_in(changed) == READY["lastTransitionTime"]


@pytest.mark.fault("F6")
def test_of_two_stored_conditions_of_a_type_the_first_counts() -> None:
    early = "2026-06-20T07:00:00Z"
    first = a_condition("Ready", "True", "Other", since=early)
    second = a_condition("Ready", "False", "Other", since=early)
    deployment = a_deployment(status={"conditions": [first, second]})
    seen = a_moment(deployment=deployment, copy=a_copy(status=a_report(READY)))
    assert member_list(written_in(reported(seen)), "conditions") == [
        {**READY, "lastTransitionTime": early, "observedGeneration": 3}
    ]


def test_unknown_stays_unknown() -> None:
    unknown = a_condition("Ready", "Unknown", "InstancesProvisioning")
    planned = reported(a_moment(copy=a_copy(status=a_report(unknown))))
    assert conditions_in(planned)[0][1] == "Unknown"


def test_report_is_a_named_cell_or_without_the_interpreter_a_generation() -> None:
    assert has_report(a_copy(status=a_report(cells="dfw-1")))
    assert not has_report(a_copy(status=a_report(cells="")))
    assert has_report(a_copy(status=a_report(cells=None, observed=1)))
    assert not has_report(a_copy(status=a_report(cells=None, observed=0)))


@pytest.mark.spec("M-59")
@pytest.mark.spec("M-60")
@pytest.mark.parametrize(
    ("copy", "observed"),
    [
        (a_copy(status=a_report(observed=5), generation=5, stamped="3"), 3),
        (a_copy(status=a_report(observed=5), generation=5, stamped="2"), 2),
        (a_copy(status=a_report(observed=4), generation=5, stamped="3"), 1),
        (a_copy(status=a_report(observed=5), generation=5, stamped="4"), 1),
        (a_copy(status=a_report(observed=5), generation=5, stamped="-1"), 1),
        (a_copy(status=a_report(observed=5), generation=5, stamped="9" * 5000), 1),
        (a_copy(status=a_report(observed=5), generation=5, stamped="three"), 1),
        (a_copy(status=a_report(observed=5), generation=5, stamped=None), 1),
    ],
)
def test_generation_of_the_hub_is_translated_to_one_of_the_project(
    copy: ProjectDeployment, observed: int
) -> None:
    deployment = a_deployment(generation=3, status={"observedGeneration": 1})
    assert translate_generation(deployment, copy) == observed


# --- refused by the hub ---------------------------------------------------------------------------


def refused_by(plane: str, error: Exception) -> Applied:
    key = ObjectKey(PlaneName(plane), COPY_KEY.kind, COPY_KEY.namespace, COPY_KEY.name)
    assert isinstance(error, InvalidSpecError | UnavailableError)
    return Applied((Outcome(Ensure(key, OwnedFields(), "r"), Effect.FAILED, error=error),))


def test_copy_that_the_hub_refuses_is_recorded_once_and_names_nothing_internal() -> None:
    applied = refused_by("@hub", InvalidSpecError("Invalid", "creating …: 422"))
    seen = a_moment(copy=Absent())
    first = report(seen, applied, NOW)
    event, wait = first
    assert isinstance(event, RecordEvent)
    assert event.reason == reasons.FEDERATION_REFUSED
    assert "hub" not in event.message
    assert isinstance(wait, RequeueAfter)
    again = replace(seen, known=FederationMemory(since={reasons.FEDERATION_REFUSED: NOW}))
    assert [one for one in report(again, applied, NOW) if isinstance(one, RecordEvent)] == []


@pytest.mark.parametrize(
    "applied",
    [
        refused_by("acme", InvalidSpecError("Invalid", "patching …: 422")),
        refused_by("@hub", UnavailableError("Timeout", "creating …")),
    ],
)
def test_other_errors_are_no_refusal(applied: Applied) -> None:
    assert report(a_moment(copy=Absent()), applied, NOW) == Plan()


def test_patience_is_that_of_the_specification() -> None:
    assert timedelta(seconds=60) == REPORT_PATIENCE


# --- referenced data ------------------------------------------------------------------------------

MISSING = Statement("ReferencedDataReady", "False", "SourceNotFound", 'Secret "db" not found')
THERE = Statement("ReferencedDataReady", "True", "Ready", "All 1 are materialised")
FAILED = DataExpectation({labels.EXPECTED_REFERENCED_DATA: '["Secret/db"]'}, MISSING)
DELIVERED = DataExpectation({labels.EXPECTED_REFERENCED_DATA: '["Secret/db"]'}, THERE)
KEPT = DataExpectation(UNSTATED, is_kept=True)


def with_data(seen: ObservedDeployment, data: DataExpectation) -> ObservedDeployment:
    return replace(seen, live=replace(seen.live, data=data))


def stated_in(planned: Plan) -> list[tuple[object, ...]]:
    return [one[1:3] for one in conditions_in(planned) if one[0] == "ReferencedDataReady"]


def warnings_in(planned: Plan) -> list[str]:
    return [one.reason for one in planned if isinstance(one, RecordEvent)]


def test_missing_data_is_stated_before_a_cell_reports() -> None:
    seen = with_data(a_moment(copy=a_copy(created=YOUNG)), FAILED)
    planned = reported(seen)
    assert stated_in(planned) == [("False", "SourceNotFound")]
    assert not status_in(planned).may_defer
    assert warnings_in(planned) == ["SourceNotFound"]
    assert any(isinstance(one, RequeueAfter) for one in planned)


@pytest.mark.parametrize("data", [KEPT, NO_DATA])
def test_nothing_is_stated_without_a_verdict_or_data(data: DataExpectation) -> None:
    planned = reported(with_data(a_moment(copy=a_copy(created=YOUNG)), data))
    assert not any(isinstance(one, SetStatus) for one in planned)


def test_missing_data_replaces_the_wait_for_a_cell() -> None:
    planned = reported(with_data(a_moment(copy=a_copy()), FAILED))
    assert {one[2] for one in conditions_in(planned)} == {"SourceNotFound"}


def test_delivered_data_is_stated_beside_the_mirror_and_recorded_once() -> None:
    seen = a_moment(copy=a_copy(status=a_report()))
    planned = reported(with_data(seen, DELIVERED))
    assert stated_in(planned) == [("True", "Ready")]
    assert warnings_in(planned) == []
    stored = a_deployment(status=written_in(planned))
    again = reported(with_data(replace(seen, deployment=stored), DELIVERED))
    assert stated_in(again) == [("True", "Ready")]
    failed = reported(with_data(replace(seen, deployment=stored), FAILED))
    assert warnings_in(failed) == ["SourceNotFound"]
    known = a_deployment(status=written_in(failed))
    assert warnings_in(reported(with_data(replace(seen, deployment=known), FAILED))) == []


def test_the_condition_goes_with_the_last_reference() -> None:
    seen = a_moment(copy=a_copy(status=a_report()))
    stored = a_deployment(status=written_in(reported(with_data(seen, DELIVERED))))
    planned = reported(with_data(replace(seen, deployment=stored), NO_DATA))
    assert stated_in(planned) == []


def test_the_tokens_are_shown_in_the_project() -> None:
    seen = a_moment(copy=a_copy(status=a_report()))
    shown = [one for one in reported(with_data(seen, DELIVERED)) if isinstance(one, Ensure)]
    assert [one.desired.annotations for one in shown] == [dict(DELIVERED.annotations)]
    assert [one for one in reported(with_data(seen, KEPT)) if isinstance(one, Ensure)] == []
