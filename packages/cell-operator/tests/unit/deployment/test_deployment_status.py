"""The status of a deployment: numbers, conditions, events (cell.md 7, 14)."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from cell_builders.deployments import (
    KEY,
    Quota,
    a_foreign_instance,
    a_seen,
    a_spec,
    a_status,
    an_instance,
)

from compute_api_types import conditions, labels
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.conditions import ReportedCondition, read_conditions
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.plan import decide
from compute_cell_operator.deployment.slots import SlotSuspension
from compute_cell_operator.deployment.status import report
from compute_cell_operator.network.observe import NetworkReference, ObservedBinding, ObservedNetwork
from compute_cell_operator.network.state import NetworkingState
from compute_cell_operator.planes import INSTANCE
from compute_operator_kit.core.errors import (
    Cause,
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    ReconcileError,
    ServerAnswer,
)
from compute_operator_kit.core.json import JsonObject, decode_json_object, encode
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.intents.intents import Ensure, OwnedFields, RecordEvent, SetStatus
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome

NOW = datetime(2026, 6, 20, 9, 0, tzinfo=UTC)
NOTHING = Applied()


def written(seen: ObservedDeployment, applied: Applied = NOTHING) -> SetStatus:
    (status,) = [i for i in report(seen, decide(seen), applied, NOW) if isinstance(i, SetStatus)]
    return status


def status_of(seen: ObservedDeployment, applied: Applied = NOTHING) -> JsonObject:
    return decode_json_object(encode(written(seen, applied).status))


def condition_of(
    seen: ObservedDeployment, kind: str, applied: Applied = NOTHING
) -> tuple[str, str, str]:
    condition = conditions.find(read_conditions(status_of(seen, applied)), kind)
    assert condition is not None
    return condition.status, condition.reason, condition.message


def events(seen: ObservedDeployment, applied: Applied = NOTHING) -> list[str]:
    return [
        intent.reason
        for intent in report(seen, decide(seen), applied, NOW)
        if isinstance(intent, RecordEvent)
    ]


def a_failed_create(ordinal: int = 0, error: ReconcileError | None = None) -> Applied:
    key = ObjectKey(KEY.plane, INSTANCE, KEY.namespace, f"web-{ordinal}")
    required = (Cause("FieldValueRequired", "spec.runtime"),)
    answer = ServerAnswer(422, "Invalid", "spec.runtime: Required value", causes=required)
    cause = error or InvalidSpecError("Invalid", "creating: 422", answer=answer)
    intent = Ensure(key, OwnedFields(), "SlotMissing")
    return Applied((Outcome(intent, Effect.FAILED, cause.reason, error=cause),))


def a_binding(reason: str, status: str = "False") -> ObservedNetwork:
    binding = ObservedBinding(
        key=KEY,
        metadata=an_instance(0).metadata,
        network=NetworkReference(KEY.namespace, "default"),
        location="dfw",
        ready=ReportedCondition("Ready", status, reason, "says NSO"),
        context=None,
    )
    return ObservedNetwork((NetworkReference("", "default"),), {0: binding})


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.spec("C-39", "C-24")
def test_a_mixed_deployment_is_counted_by_what_the_provider_reports() -> None:
    seen = a_seen(
        an_instance(0),
        an_instance(1, ready=False, programmed=False, reason="Provisioning"),
        an_instance(2, reported=HashVerdict.STALE, revision=HashVerdict.STALE),
        an_instance(3, reported=None, ready=False, quota=Quota("False", "QuotaExceeded")),
        an_instance(4, reported=HashVerdict.NOT_JUDGED, ready=False, terminating=True),
        a_foreign_instance(5),
        desired=4,
    )
    status = status_of(seen)
    numbers = ("replicas", "updatedReplicas", "currentReplicas", "readyReplicas", "desiredReplicas")
    assert [status[name] for name in numbers] == [5, 2, 1, 2, 4]
    assert condition_of(seen, "ReplicasReady")[2] == "1 of 4 desired replicas are pending quota"


@pytest.mark.spec("C-44", "C-47")
def test_zeros_are_sent_and_everything_carries_the_generation() -> None:
    status = status_of(a_seen(desired=0, generation=9))
    assert status["observedGeneration"] == 9
    assert {entry.observed_generation for entry in read_conditions(status)} == {9}
    for name in ("replicas", "updatedReplicas", "currentReplicas", "readyReplicas"):
        assert status[name] == 0


@pytest.mark.spec("C-45")
@pytest.mark.parametrize(
    ("annotation", "expected"),
    [("7", 7), ("0", 0), ("", None), ("-1", None), ("x", None), ("٣", None), ("9" * 19, None)],
)
def test_the_hub_generation_is_reported_where_it_is_legible(
    annotation: str, expected: int | None
) -> None:
    seen = a_seen(
        annotations={"resourcetemplate.karmada.io/generation": annotation},
        status={"observedTemplateGeneration": 3},
    )
    assert status_of(seen).get("observedTemplateGeneration") == expected


def test_a_largest_generation_fits() -> None:
    largest = str(2**63 - 1)
    seen = a_seen(annotations={"resourcetemplate.karmada.io/generation": largest})
    assert status_of(seen)["observedTemplateGeneration"] == 2**63 - 1


@pytest.mark.spec("OU-05")
@pytest.mark.parametrize(
    ("annotation", "expected"),
    [("hub-1", "hub-1"), ("", None), ("x" * 64, "x" * 64), ("x" * 65, None)],
)
def test_a_status_names_the_hub_deployment_it_belongs_to(
    annotation: str, expected: str | None
) -> None:
    seen = a_seen(
        annotations={"resourcetemplate.karmada.io/uid": annotation},
        status={"observedTemplateUID": "hub-0"},
    )
    assert status_of(seen).get("observedTemplateUID") == expected


@pytest.mark.spec("OU-05")
@pytest.mark.parametrize("stored", ["hub-1", "", None])
def test_a_status_belongs_to_no_hub_deployment_while_it_is_being_deleted(
    stored: str | None,
) -> None:
    # Karmada has already written the UID of the next one onto the copy that terminates.
    annotations = {"resourcetemplate.karmada.io/uid": "hub-2"}
    status: JsonObject = {} if stored is None else {"observedTemplateUID": stored}
    going = a_seen(annotations=annotations, status=status, deleting=True)
    assert status_of(going)["observedTemplateUID"] == ""
    with_namespace = a_seen(annotations=annotations, status=status, namespace_deleting=True)
    assert status_of(with_namespace)["observedTemplateUID"] == ""


@pytest.mark.spec("OU-05")
def test_without_karmada_a_status_names_no_hub_deployment() -> None:
    assert "observedTemplateUID" not in status_of(a_seen())
    assert "observedTemplateUID" not in status_of(a_seen(deleting=True))


# --- available ------------------------------------------------------------------------------------


def seen_in(situation: str) -> tuple[ObservedDeployment, Applied]:
    """One deployment per row of the table; nothing of it is ready."""
    unready = an_instance(0, ready=False, reason="Provisioning", reported=None)
    on = NetworkingState.ON
    match situation:
        case "CityCodeMismatch":
            return a_seen(unready, cell_city="LHR"), NOTHING
        case "NetworkFailedToCreate" | "NetworkNotFound":
            return a_seen(unready, networking=on, network=a_binding(situation)), NOTHING
        case "InstanceFailedToCreate":
            return a_seen(), a_failed_create()
        case "ImageUnavailable" | "InstanceCrashing" | "ConfigurationError":
            broken = an_instance(0, ready=False, reason=situation, message="boom", reported=None)
            return a_seen(broken), NOTHING
        case "QuotaNotGranted":
            held = an_instance(0, ready=False, quota=Quota("False", "QuotaExceeded"), reported=None)
            return a_seen(held), NOTHING
        case "NoMatchingLocation":
            return a_seen(unready, networking=on, locations=()), NOTHING
        case "NetworkProvisioning":
            return a_seen(unready, networking=on, network=a_binding("Pending", "Unknown")), NOTHING
        case "InstancesProvisioning":
            return a_seen(unready), NOTHING
        case _:
            raise AssertionError(situation)


MESSAGES = {
    "CityCodeMismatch": 'Deployment asked for city "DFW" but this cell serves "LHR"; '
    "it was delivered to the wrong cell",
    "NetworkFailedToCreate": "says NSO",
    "NetworkNotFound": "says NSO",
    "InstanceFailedToCreate": 'Instance "web-0" could not be created: '
    "spec.runtime: FieldValueRequired",
    "ImageUnavailable": 'Instance "web-0": boom',
    "InstanceCrashing": 'Instance "web-0": boom',
    "ConfigurationError": 'Instance "web-0": boom',
    "QuotaNotGranted": "1 of 1 desired instances pending quota: quota of web-0",
    "NoMatchingLocation": 'No Location matches city code "DFW"',
    "NetworkProvisioning": 'Network is being provisioned: waiting for NetworkBinding "web-net-0"',
    "InstancesProvisioning": "Instances are being provisioned",
}


@pytest.mark.spec("C-40")
@pytest.mark.parametrize("reason", MESSAGES)
def test_every_row_of_the_available_table(reason: str) -> None:
    seen, applied = seen_in(reason)
    assert condition_of(seen, "Available", applied) == ("False", reason, MESSAGES[reason])


ROWS = tuple(MESSAGES)  # in the order of the table
BROKEN_ROWS = {"ImageUnavailable", "InstanceCrashing", "ConfigurationError"}
NETWORK_ROWS = ("NetworkFailedToCreate", "NetworkNotFound", "NetworkProvisioning")
# Without a Location no binding is evaluated, so these rows never apply together.
NEVER_TOGETHER = {("NoMatchingLocation", row) for row in NETWORK_ROWS}
PAIRS = [
    pair
    for pair in itertools.combinations(MESSAGES, 2)
    if pair not in NEVER_TOGETHER and pair[::-1] not in NEVER_TOGETHER
]


def seen_with(rows: tuple[str, ...]) -> tuple[ObservedDeployment, Applied]:
    """A deployment to which all these rows apply: each has a slot or an interface of its own."""
    broken = [row for row in rows if row in BROKEN_ROWS]
    slots = [an_instance(0, ready=False, reason="Provisioning", reported=None)]
    slots += [
        an_instance(place, ready=False, reason=row, message=row, reported=None)
        for place, row in enumerate(broken, start=1)
    ]
    if "QuotaNotGranted" in rows:
        slots.append(an_instance(3, ready=False, quota=Quota("False", "QuotaExceeded")))
    bindings = [row for row in rows if row in NETWORK_ROWS]
    by_index = {place: a_binding(row).bindings[0] for place, row in enumerate(bindings)}
    seen = a_seen(
        *slots,
        desired=5,
        cell_city="LHR" if "CityCodeMismatch" in rows else "",
        networking=NetworkingState.ON
        if bindings or "NoMatchingLocation" in rows
        else NetworkingState.OFF,
        locations=() if "NoMatchingLocation" in rows else ("dfw",),
        network=ObservedNetwork(tuple(NetworkReference("", "default") for _ in by_index), by_index),
    )
    return seen, a_failed_create(4) if "InstanceFailedToCreate" in rows else NOTHING


@pytest.mark.spec("C-40")
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_of_two_rows_the_higher_rank_wins_and_ties_go_to_the_first(first: str, second: str) -> None:
    for pair in ((first, second), (second, first)):
        seen, applied = seen_with(pair)
        # Ties: among slots the lowest ordinal, which has the pair's first; else the table's order.
        in_order = pair if set(pair) <= BROKEN_ROWS else sorted(pair, key=ROWS.index)
        winner = max(in_order, key=lambda row: conditions.RANKS[row])
        assert condition_of(seen, "Available", applied)[1] == winner


def test_ties_among_instances_go_to_the_lowest_ordinal() -> None:
    seen = a_seen(
        an_instance(1, ready=False, reason="ImageUnavailable", message="one"),
        an_instance(0, ready=False, reason="InstanceCrashing", message="zero"),
        desired=2,
    )
    assert condition_of(seen, "Available")[1:] == ("InstanceCrashing", 'Instance "web-0": zero')


def test_surplus_instances_do_not_speak_for_the_deployment() -> None:
    seen = a_seen(
        an_instance(0, ready=False, reason="Provisioning"),
        an_instance(1, ready=False, reason="InstanceCrashing"),
        an_instance(2, ready=False, quota=Quota("False", "QuotaExceeded")),
    )
    assert condition_of(seen, "Available")[1] == "InstancesProvisioning"


def test_an_empty_deployment_has_no_instances_yet() -> None:
    assert condition_of(a_seen(), "Available")[2] == "No instances available yet"


def test_a_foreign_instance_in_a_slot_is_named() -> None:
    seen = a_seen(a_foreign_instance(0), a_foreign_instance(9))
    message = 'Instance "web-0" belongs to another deployment; waiting for it to go'
    assert condition_of(seen, "Available") == ("False", "InstancesProvisioning", message)


@pytest.mark.spec("C-41")
@pytest.mark.parametrize("reason", ["CityCodeMismatch", "NoMatchingLocation"])
def test_one_ready_instance_is_available_whatever_else_blocks(reason: str) -> None:
    ready = an_instance(0)
    broken = an_instance(1, ready=False, reason="ImageUnavailable")
    city = "LHR" if reason == "CityCodeMismatch" else ""
    seen = a_seen(
        ready, broken, desired=2, cell_city=city, networking=NetworkingState.ON, locations=()
    )
    assert condition_of(seen, "Available") == (
        "True",
        "StableInstanceFound",
        "1/2 instances are ready",
    )


@pytest.mark.parametrize(
    ("quota", "is_held"),
    [
        (Quota("False", "QuotaExceeded"), True),
        (Quota("False", "UnknownInstanceType"), False),
        (Quota("Unknown", "QuotaNoBudget"), True),
        (Quota("Unknown", "PendingEvaluation"), False),
        (Quota(), False),
        (None, False),
    ],
)
def test_what_counts_as_held_by_quota(quota: Quota | None, *, is_held: bool) -> None:
    seen = a_seen(an_instance(0, ready=False, reason="SchedulingGatesPresent", quota=quota))
    assert (condition_of(seen, "Available")[1] == "QuotaNotGranted") is is_held


def test_a_terminating_instance_is_not_held() -> None:
    going = an_instance(0, ready=False, quota=Quota("False", "QuotaExceeded"), terminating=True)
    assert condition_of(a_seen(going), "Available")[1] == "InstancesProvisioning"


def test_a_refusal_without_an_answer_of_the_server_still_has_a_cause() -> None:
    applied = a_failed_create(error=ForbiddenError("Forbidden", "creating: 403"))
    assert condition_of(a_seen(), "Available", applied)[2].endswith(
        "could not be created: creating: 403"
    )


@pytest.mark.fault("G10")
@pytest.mark.parametrize(("status", "reason"), [(422, "Invalid"), (403, "Forbidden")])
def test_a_value_that_the_server_repeats_is_not_repeated(status: int, reason: str) -> None:
    answer = ServerAnswer(status, reason, 'env[0].value: Invalid value: "hunter2"')
    error = InvalidSpecError(reason, "creating: refused", answer=answer)
    message = condition_of(a_seen(), "Available", a_failed_create(error=error))[2]
    assert message.endswith(f"could not be created: the API server answered {status} {reason}")
    assert "hunter2" not in message


def test_a_conflict_is_no_refusal() -> None:
    applied = a_failed_create(error=ConflictError("AlreadyExists", "taken"))
    assert condition_of(a_seen(), "Available", applied)[1] == "InstancesProvisioning"


# --- replicas ready -------------------------------------------------------------------------------


@pytest.mark.spec("C-42")
def test_ready_is_true_only_when_everything_wanted_runs_the_current_template() -> None:
    both = ("True", "ReplicasAvailable", "2/2 replicas available")
    settled = a_seen(an_instance(0), an_instance(1), desired=2)
    assert condition_of(settled, "ReplicasReady") == condition_of(settled, "Ready") == both
    for short in (
        a_seen(an_instance(0), desired=2),
        a_seen(an_instance(0), an_instance(1), an_instance(2), desired=2),
        a_seen(an_instance(0), an_instance(1, reported=None), desired=2),
        a_seen(an_instance(0), an_instance(1, ready=False), desired=2),
    ):
        assert condition_of(short, "ReplicasReady")[0] == condition_of(short, "Ready")[0] == "False"


@pytest.mark.spec("C-43")
def test_the_rows_of_replicas_ready() -> None:
    held = an_instance(1, ready=False, quota=Quota("False", "QuotaExceeded"))
    seen = a_seen(an_instance(0), held, desired=2)
    assert condition_of(seen, "ReplicasReady")[1:] == (
        "QuotaExceeded",
        "1 of 2 desired replicas are pending quota",
    )
    pending = ("QuotaNotGranted", "1 of 2 desired replicas are pending quota: quota of web-1")
    assert condition_of(seen, "Ready")[1:] == pending
    away = an_instance(1, ready=False, quota=Quota("False", "QuotaBackendUnavailable"))
    seen = a_seen(an_instance(0), away, desired=2)
    assert condition_of(seen, "ReplicasReady")[1:] == condition_of(seen, "Ready")[1:] == pending
    broken = an_instance(2, ready=False, reason="InstanceCrashing", message="boom")
    seen = a_seen(an_instance(0), held, broken, desired=3)
    assert condition_of(seen, "ReplicasReady")[1] == "InstanceCrashing"
    waiting = a_seen(an_instance(0), desired=2, networking=NetworkingState.ON, locations=())
    assert condition_of(waiting, "ReplicasReady")[1] == "NoMatchingLocation"


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (
            a_seen(an_instance(0, revision=HashVerdict.STALE, reported=HashVerdict.STALE)),
            "0 of 1 replicas run the current template",
        ),
        (a_seen(an_instance(0, reported=None)), "0 of 1 replicas run the current template"),
        (a_seen(an_instance(0, ready=False)), "0 of 1 replicas are ready"),
        (a_seen(an_instance(0), an_instance(1)), "2 of 1 replicas are ready"),
    ],
)
def test_the_rest_of_a_rollout_is_reported_in_numbers(
    seen: ObservedDeployment, message: str
) -> None:
    assert condition_of(seen, "ReplicasReady") == ("False", "InstancesProvisioning", message)


@pytest.mark.spec("OU-04")
def test_a_deletion_that_waits_for_an_unknown_finalizer_is_the_first_row() -> None:
    full = Quota("False", "QuotaExceeded")
    waiting = an_instance(0, reported=None, ready=False, quota=full, terminating=True)
    seen = a_seen(waiting, deleting=True, finalizers=("theirs/cleanup",))
    message = 'Deployment is being deleted; deletion waits for finalizer "theirs/cleanup"'
    for kind in ("ReplicasReady", "Ready"):
        assert condition_of(seen, kind) == ("False", "DeletionBlocked", message)


# --- writing --------------------------------------------------------------------------------------


def test_location_is_kept_in_every_row_that_resolves_none() -> None:
    stored: JsonObject = {"location": {"name": "dfw"}}
    for seen in (
        a_seen(status=stored, cell_city="LHR"),
        a_seen(status=stored),
        a_seen(status=stored, networking=NetworkingState.ON, locations=()),
        a_seen(status=stored, networking=NetworkingState.ON, locations=Unreadable("NotSynced")),
        # A pruned namespace is no drift.
        a_seen(status=stored, networking=NetworkingState.ON),
    ):
        assert status_of(seen)["location"] == {"name": "dfw"}
    moved = status_of(a_seen(status=stored, networking=NetworkingState.ON, locations=("efw",)))
    assert moved["location"] == {"name": "efw", "namespace": ""}


@pytest.mark.spec("C-28")
def test_the_stored_network_reason_stays_while_the_network_cannot_be_read() -> None:
    for reason in ("NoMatchingLocation", "NetworkProvisioning", "NetworkFailedToCreate"):
        stored = a_status(reason, message="as before")
        for locations in (Unreadable("x"), ("dfw",)):
            seen = a_seen(
                status=stored,
                networking=NetworkingState.ON,
                locations=locations,
                network=Unreadable("x"),
            )
            assert condition_of(seen, "Available") == ("False", reason, "as before")
    nothing = a_seen(
        networking=NetworkingState.ON, locations=Unreadable("x"), network=Unreadable("x")
    )
    assert condition_of(nothing, "Available")[1] == "InstancesProvisioning"


def test_unknown_fields_and_foreign_conditions_survive() -> None:
    foreign: JsonObject = {"type": "Else", "status": "True", "reason": "R", "message": "", "x": 1}
    stored: JsonObject = {"conditions": [foreign, "odd"], "later": {"a": 1}}
    status = status_of(a_seen(status=stored))
    assert status["later"] == {"a": 1}
    kept = status["conditions"]
    assert isinstance(kept, list)
    assert kept[:2] == [foreign, "odd"]


def test_a_status_on_its_way_is_provisional_and_trouble_is_not() -> None:
    assert written(a_seen()).may_defer
    assert not written(a_seen(an_instance(0))).may_defer
    assert not written(*seen_in("ImageUnavailable")).may_defer


# --- events ---------------------------------------------------------------------------------------


@pytest.mark.spec("C-83")
def test_events_tell_what_this_write_changes() -> None:
    assert events(a_seen(desired=3)) == ["Scaled"]
    stored = a_status("InstancesProvisioning", desiredReplicas=1, updatedReplicas=1)
    assert events(a_seen(an_instance(0, reported=None), status=stored)) == []
    rolling = a_seen(an_instance(0, reported=HashVerdict.STALE), status=stored, generation=2)
    assert events(rolling) == ["RolloutStarted"]
    stored = a_status("InstancesProvisioning", desiredReplicas=1, updatedReplicas=0)
    assert events(a_seen(an_instance(0), status=stored)) == ["RolloutCompleted"]
    stored = a_status("InstancesProvisioning", desiredReplicas=1, updatedReplicas=1)
    assert events(a_seen(an_instance(0), status=stored)) == []


@pytest.mark.spec("C-46", "C-83")
@pytest.mark.parametrize(
    "reason",
    ["InstanceFailedToCreate", "CityCodeMismatch", "NoMatchingLocation", "NetworkFailedToCreate"],
)
def test_a_warning_is_recorded_when_its_reason_begins(reason: str) -> None:
    seen, applied = seen_in(reason)
    assert reason in events(seen, applied)
    stored = a_status(reason, desiredReplicas=1)
    again = a_seen(
        *seen.owned,
        status=stored,
        networking=seen.networking,
        network=seen.network,
        cell_city=seen.cell_city,
        locations=() if reason == "NoMatchingLocation" else ("dfw",),
    )
    assert events(again, applied) == []


@pytest.mark.spec("C-20", "C-28")
def test_ambiguities_are_recorded_once_per_generation() -> None:
    spec = a_spec(0, policy="Parallel")
    seen = a_seen(spec=spec, networking=NetworkingState.ON, locations=("a", "b"))
    assert events(seen) == ["AmbiguousLocation", "UnsupportedManagementPolicy"]
    stored: JsonObject = {"observedGeneration": 1}
    assert (
        events(
            a_seen(spec=spec, networking=NetworkingState.ON, locations=("a", "b"), status=stored)
        )
        == []
    )


# --- suspension (suspension.md 4) -----------------------------------------------------------------

ORDER = {labels.SUSPENDED: "true"}
STOPPED = an_instance(0, ready=False, suspension=SlotSuspension.STOPPED)


def test_conditions_name_the_suspension_while_instances_still_read_as_ready() -> None:
    seen = a_seen(an_instance(0), an_instance(1), desired=2, annotations=ORDER)
    for kind in ("Available", "ReplicasReady", "Ready"):
        message = "The project is suspended; 0 instance(s) are suspended"
        assert condition_of(seen, kind) == ("False", "Suspended", message)
    assert status_of(seen)["suspended"] is True
    assert written(seen).may_defer is False


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (SlotSuspension.NONE, "1 instance(s) are stopped"),
        (SlotSuspension.SUSPENDED, "2 instance(s) are suspended"),
        (SlotSuspension.STOPPED, "2 instance(s) are stopped"),
    ],
)
def test_stopped_is_said_only_where_every_provider_reports_it(
    second: SlotSuspension, text: str
) -> None:
    other = an_instance(1, ready=False, suspension=second)
    seen = a_seen(STOPPED, other, desired=2, annotations=ORDER)
    assert condition_of(seen, "Ready")[2] == f"The project is suspended; {text}"


@pytest.mark.spec("SU-12")
def test_a_suspension_outranks_the_wrong_city_and_a_broken_image() -> None:
    broken = an_instance(0, ready=False, reason="ImageUnavailable")
    seen = a_seen(broken, annotations=ORDER, cell_city="ORD")
    assert condition_of(seen, "Available")[1] == "Suspended"
    assert condition_of(seen, "Ready")[1] == "Suspended"


def test_a_finalizer_that_holds_a_deletion_is_named_before_the_suspension() -> None:
    seen = a_seen(deleting=True, finalizers=("example.net/hold",), annotations=ORDER)
    assert condition_of(seen, "Ready")[1] == "DeletionBlocked"


@pytest.mark.parametrize("value", ["True", "1", "", "false"])
def test_another_value_of_the_annotation_suspends_nothing(value: str) -> None:
    seen = a_seen(an_instance(0), annotations={labels.SUSPENDED: value})
    assert condition_of(seen, "Ready")[0] == "True"
    assert "suspended" not in status_of(seen)


def test_pause_and_resume_are_recorded_once() -> None:
    paused = a_seen(an_instance(0), annotations=ORDER)
    assert events(paused).count("ProjectPaused") == 1
    shown: JsonObject = {**a_status("Suspended"), "suspended": True}
    assert "ProjectPaused" not in events(a_seen(STOPPED, annotations=ORDER, status=shown))
    resumed = a_seen(an_instance(0), status=shown)
    assert events(resumed).count("ProjectResumed") == 1
    assert "suspended" not in status_of(resumed)


def test_location_network_and_gates_stay_while_suspended() -> None:
    gated = an_instance(0, ready=False, gates=("Network",), location="")
    shown: JsonObject = {"location": {"name": "dfw", "namespace": ""}}
    seen = a_seen(
        gated, annotations=ORDER, networking=NetworkingState.ON, locations=("abc",), status=shown
    )
    assert list(decide(seen).plan) == []
    assert status_of(seen)["location"] == {"name": "dfw", "namespace": ""}
