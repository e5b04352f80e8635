"""The status of a Workload, decided without a server."""

from __future__ import annotations

from datetime import timedelta

import pytest
from management_builders.workload import Builders

from compute_api_types import conditions, reasons
from compute_management_operator.workload.observe import ObservedWorkload, WorkloadChild
from compute_management_operator.workload.plan import plan
from compute_management_operator.workload.status.report import (
    rejection_event,
    rejections,
    report,
)
from compute_operator_kit.cache.optional_kinds import Off
from compute_operator_kit.core.errors import (
    Cause,
    ForbiddenError,
    InvalidSpecError,
    ServerAnswer,
    UnavailableError,
)
from compute_operator_kit.core.json import (
    Json,
    JsonMapping,
    JsonObject,
    decode_json_object,
    encode,
    member_list,
    member_text,
)
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.intents.intents import Ensure, RecordEvent, RequeueAfter, SetStatus
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome


@pytest.fixture
def build() -> Builders:
    return Builders()


def carried_out(seen: ObservedWorkload, effect: Effect = Effect.EQUAL) -> Applied:
    return Applied(tuple(Outcome(one, effect) for one in plan(seen)))


def reported(build: Builders, seen: ObservedWorkload, effect: Effect = Effect.EQUAL) -> SetStatus:
    (status,) = [
        one
        for one in report(seen, carried_out(seen, effect), build.now)
        if isinstance(one, SetStatus)
    ]
    return status


def stored(status: JsonMapping) -> JsonObject:
    """The status as a plane gives it back."""
    return decode_json_object(encode(status))


def condition(status: JsonMapping, kind: str) -> tuple[str, str, str]:
    entries = [
        entry
        for entry in member_list(stored(status), "conditions")
        if isinstance(entry, dict) and entry["type"] == kind
    ]
    assert len(entries) == 1
    entry = entries[0]
    return member_text(entry, "status"), member_text(entry, "reason"), member_text(entry, "message")


def placement(status: JsonMapping, name: str) -> JsonObject:
    entries = [
        entry
        for entry in member_list(stored(status), "placements")
        if isinstance(entry, dict) and entry["name"] == name
    ]
    assert len(entries) == 1
    return entries[0]


def test_all_deployments_ready_is_ready(build: Builders) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    status = reported(build, build.a_moment(deployments=(runs,))).status
    assert condition(status, "Ready") == ("True", "PlacementsReady", "All deployments are ready")
    available = ("True", "AvailablePlacementFound", "At least one available placement was found")
    assert condition(status, "Available") == available
    texas = placement(status, "texas")
    assert condition(texas, "Ready")[0] == "True"
    assert condition(texas, "Available")[1] == "AvailableDeploymentFound"
    assert status["observedGeneration"] == 3


@pytest.mark.parametrize("effect", [Effect.WRITTEN, Effect.FAILED, Effect.HELD])
def test_what_this_pass_changed_or_could_not_is_not_ready_yet(
    build: Builders, effect: Effect
) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    status = reported(build, build.a_moment(deployments=(runs,)), effect).status
    assert condition(status, "Ready") == (
        "False",
        "InstancesProvisioning",
        "Deployments are being brought up to date",
    )


@pytest.mark.spec("M-21")
def test_one_available_deployment_is_enough_and_none_is_reported(build: Builders) -> None:
    none = reported(build, build.a_moment(placements={})).status
    assert condition(none, "Available")[1] == "NoAvailablePlacements"
    assert condition(none, "Ready")[0] == "False"
    up = build.a_deployment("texas", "DFW", status=build.ready(replicas=2))
    going = build.a_deployment("texas", "LHR", status=build.ready(replicas=3), is_deleting=True)
    status = reported(build, build.a_moment(deployments=(up, going))).status
    assert condition(status, "Available")[0] == "True"
    assert (status["replicas"], status["deployments"]) == (5, 2)


@pytest.mark.spec("M-21")
def test_a_deployment_behind_its_generation_adds_nothing_to_updated(build: Builders) -> None:
    behind = build.a_deployment("texas", "DFW", status=build.ready(observed=1))
    status = reported(build, build.a_moment(deployments=(behind,))).status
    assert (status["updatedReplicas"], status["currentReplicas"]) == (0, 0)
    assert (status["replicas"], status["readyReplicas"]) == (1, 1)
    assert condition(status, "Ready")[0] == "False"


@pytest.mark.spec("M-19")
def test_a_blocking_reason_reaches_placement_and_workload(build: Builders) -> None:
    stated = ("False", reasons.QUOTA_NOT_GRANTED, "1 of 1 desired instances pending quota")
    held = build.a_deployment("texas", "DFW", status=build.a_status(stated, stated))
    status = reported(build, build.a_moment(deployments=(held,))).status
    for kind in ("Available", "Ready"):
        assert condition(status, kind) == stated
        assert condition(placement(status, "texas"), kind) == stated
    entries = [one for one in member_list(stored(status), "conditions") if isinstance(one, dict)]
    assert all(one["observedGeneration"] == 3 for one in entries)


@pytest.mark.spec("M-20")
@pytest.mark.parametrize("reason", [name for name, rank in conditions.RANKS.items() if rank > 1])
def test_the_highest_rank_wins_over_placements(build: Builders, reason: str) -> None:
    def blocked(placement_name: str, city: str, why: str) -> WorkloadChild:
        stated = ("False", why, f"{why} in {city}")
        return build.a_deployment(placement_name, city, status=build.a_status(stated, stated))

    low = blocked("a", "DFW", reasons.INSTANCES_PROVISIONING)
    high = blocked("b", "LHR", reason)
    seen = build.a_moment(placements={"a": ("DFW",), "b": ("LHR",)}, deployments=(low, high))
    assert condition(reported(build, seen).status, "Available")[1] == reason
    assert condition(reported(build, seen).status, "Ready")[1] == reason


DARK = ("Unknown", "CellUnreachable", 'City "LHR" has not been heard of')
QUOTA = ("False", "QuotaNotGranted", "1 of 1 desired instances pending quota")
IMAGE = ("False", "ImageUnavailable", "The image cannot be pulled")


@pytest.mark.spec("DS-02")
@pytest.mark.parametrize(
    ("other", "available", "ready"),
    [
        (None, ("True", "AvailablePlacementFound"), DARK[:2]),
        (DARK, DARK[:2], DARK[:2]),
        (QUOTA, DARK[:2], DARK[:2]),
        (IMAGE, IMAGE[:2], IMAGE[:2]),
    ],
)
def test_a_city_that_is_not_heard_gives_unknown_where_its_reason_wins(
    build: Builders,
    other: tuple[str, str, str] | None,
    available: tuple[str, str],
    ready: tuple[str, str],
) -> None:
    first = build.ready() if other is None else build.a_status(other, other)
    seen = build.a_moment(
        placements={"a": ("DFW",), "b": ("LHR",)},
        deployments=(
            build.a_deployment("a", "DFW", status=first),
            build.a_deployment("b", "LHR", status=build.a_status(DARK, DARK)),
        ),
    )
    status = reported(build, seen).status
    assert condition(status, "Available")[:2] == available
    assert condition(status, "Ready")[:2] == ready
    for kind in ("Available", "Ready"):
        assert condition(placement(status, "b"), kind) == DARK
    assert reported(build, seen).status == status


@pytest.mark.spec("M-20")
def test_equal_ranks_go_by_placement_then_by_deployment(build: Builders) -> None:
    def blocked(name: str, city: str) -> WorkloadChild:
        stated = ("False", reasons.IMAGE_UNAVAILABLE, f"{name} in {city}")
        return build.a_deployment(name, city, status=build.a_status(stated, stated))

    deployments = (blocked("a", "LHR"), blocked("b", "DFW"), blocked("b", "LHR"))
    seen = build.a_moment(
        placements={"b": ("DFW", "LHR"), "a": ("LHR",)},
        deployments=deployments,
    )
    status = reported(build, seen).status
    assert condition(status, "Available")[2] == "a in LHR"
    assert condition(placement(status, "b"), "Available")[2] == "b in DFW"


@pytest.mark.spec("M-08")
def test_a_city_without_location_is_named_where_it_blocks(build: Builders) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    seen = build.a_moment(
        placements={"texas": ("DFW",), "moon": ("TYCHO", "APOLLO")}, deployments=(runs,)
    )
    status = reported(build, seen).status
    not_served = ("False", "NoMatchingLocation", "No location found for city codes: APOLLO, TYCHO")
    assert condition(placement(status, "moon"), "Available") == not_served
    assert condition(status, "Available")[0] == "True"
    assert condition(status, "Ready") == not_served


def test_a_lost_location_is_reported_while_the_city_runs_on(build: Builders) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    lost = reported(build, build.a_moment(deployments=(runs,), served=frozenset[str]())).status
    assert condition(lost, "Ready")[1] == "NoMatchingLocation"
    assert condition(lost, "Available")[0] == "True"
    for served in (Unreadable("Unavailable"), Off()):
        status = reported(build, build.a_moment(deployments=(runs,), served=served)).status
        assert condition(status, "Ready")[0] == "True"


@pytest.mark.spec("M-09")
def test_a_failing_list_of_locations_takes_nothing_back(build: Builders) -> None:
    before = reported(build, build.a_moment(served=frozenset[str]())).status
    after = reported(
        build, build.a_moment(served=Unreadable("Unavailable"), status=stored(before))
    ).status
    assert condition(placement(after, "texas"), "Available")[1] == "NoMatchingLocation"
    fresh = reported(build, build.a_moment(served=Unreadable("Unavailable"))).status
    assert condition(placement(fresh, "texas"), "Available")[1] == "NoAvailableDeployments"


@pytest.mark.spec("M-15")
def test_missing_networks_are_named_in_order(build: Builders) -> None:
    seen = build.a_moment(networks=("b", "a"))
    status = reported(build, seen).status
    missing = ("False", "NetworkNotFound", "Unable to find networks: a, b")
    assert condition(status, "Available") == missing
    assert condition(status, "Ready") == missing
    again = build.a_moment(networks=("b", "a"), status=stored(status))
    assert reported(build, again).status == status


def test_a_left_over_deployment_keeps_the_workload_from_being_ready(build: Builders) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    left = build.a_deployment("old", "LHR", status=build.ready())
    status = reported(build, build.a_moment(deployments=(runs, left))).status
    assert condition(status, "Ready")[1] == "InstancesProvisioning"
    assert condition(placement(status, "old"), "Ready")[0] == "False"


@pytest.mark.spec("M-13")
def test_a_name_collision_is_reported_with_the_name(build: Builders) -> None:
    taken = build.a_deployment("x", "Y", name="web-texas-dfw", workload_uid="another")
    hashed = next(
        one.key.name for one in plan(build.a_moment(others=(taken,))) if isinstance(one, Ensure)
    )
    also = build.a_deployment("x", "Y", name=hashed, workload_uid="another")
    status = reported(build, build.a_moment(others=(taken, also))).status
    collision = (
        "False",
        "NameCollision",
        'Deployment name "web-texas-dfw" is taken by another workload',
    )
    assert condition(status, "Available") == collision


@pytest.mark.spec("M-22")
def test_times_move_only_with_status(build: Builders) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    first = reported(build, build.a_moment(deployments=(runs,))).status
    later = build.now.replace(hour=12)
    seen = build.a_moment(deployments=(runs,), status=stored(first))
    (again,) = [one for one in report(seen, carried_out(seen), later) if isinstance(one, SetStatus)]
    assert again.status == first


def test_a_deleting_workload_names_what_it_waits_for(build: Builders) -> None:
    going = build.a_deployment("texas", "DFW", status=build.ready(), is_deleting=True)
    status = reported(build, build.a_moment(is_deleting=True, deployments=(going,)))
    waiting = "Waiting for deployments to go: web-texas-dfw"
    assert condition(status.status, "Ready") == ("False", "Terminating", waiting)
    assert not status.may_defer


@pytest.mark.spec("M-06")
def test_the_reconcile_that_adds_the_finalizer_reports_nothing_and_waits_for_no_event(
    build: Builders,
) -> None:
    seen = build.a_moment(has_finalizer=False)
    (wait,) = report(seen, carried_out(seen, Effect.WRITTEN), build.now)
    assert isinstance(wait, RequeueAfter)
    assert wait.retry_after == timedelta()


def test_a_finalizer_that_could_not_be_added_is_left_to_the_back_off(build: Builders) -> None:
    seen = build.a_moment(has_finalizer=False)
    (added,) = plan(seen)
    refused = ForbiddenError("Forbidden", "adding a finalizer: not allowed")
    failed = Applied((Outcome(added, Effect.FAILED, error=refused),))
    assert not list(report(seen, failed, build.now))


def test_nothing_is_reported_once_the_last_deployment_is_gone(build: Builders) -> None:
    for seen in (
        build.a_moment(is_deleting=True),
        build.a_moment(is_deleting=True, has_finalizer=False),
    ):
        assert not list(report(seen, Applied(), build.now))


@pytest.mark.spec("M-24")
def test_a_rejected_deployment_is_an_event_and_stops_no_status(build: Builders) -> None:
    seen = build.a_moment()
    (created,) = [one for one in plan(seen) if isinstance(one, Ensure)]
    refused = InvalidSpecError(reasons.REFUSED, "creating WorkloadDeployment: refused")
    outcomes = Applied((Outcome(created, Effect.FAILED, error=refused),))
    assert isinstance(next(iter(report(seen, outcomes, build.now))), SetStatus)
    (message,) = rejections(outcomes).values()
    event = rejection_event(seen, message)
    assert (event.reason, event.type) == ("DeploymentRejected", "Warning")
    assert event.message == (
        'Deployment "web-texas-dfw" was rejected: the API server calls it invalid'
    )


@pytest.mark.spec("M-24")
@pytest.mark.fault("G10")
def test_a_rejection_names_the_fields_and_no_value_and_others_are_none(
    build: Builders,
) -> None:
    seen = build.a_moment(placements={"texas": ("DFW", "LHR")})
    first, second = [one for one in plan(seen) if isinstance(one, Ensure)]
    field = "spec.template.spec.runtime.sandbox.containers[0].env[0].value"
    words = f'{field}: Invalid value: "hunter2": too short'
    answer = ServerAnswer(422, "Invalid", words, causes=(Cause("FieldValueInvalid", field),))
    refused = InvalidSpecError("Invalid", "creating it: 422", answer=answer)
    away = UnavailableError("Unreachable", "creating it: no connection")
    outcomes = Applied(
        (
            Outcome(first, Effect.FAILED, error=refused),
            Outcome(second, Effect.FAILED, error=away),
        )
    )
    assert rejections(outcomes) == {
        "web-texas-dfw": f'Deployment "web-texas-dfw" was rejected: {field}: FieldValueInvalid'
    }


def test_a_deployment_made_in_this_pass_is_counted(build: Builders) -> None:
    seen = build.a_moment(deployments=(build.a_deployment("texas", "LHR"),))
    assert reported(build, seen, Effect.WRITTEN).status["deployments"] == 2
    assert reported(build, seen, Effect.FAILED).status["deployments"] == 1


def test_a_duplicate_of_another_client_keeps_the_workload_from_being_ready(build: Builders) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    double = build.a_deployment("texas", "DFW", name="x", status=build.ready())
    status = reported(build, build.a_moment(deployments=(runs, double))).status
    assert condition(status, "Ready")[:2] == ("False", "InstancesProvisioning")


def test_unreadable_networks_leave_the_stored_condition(build: Builders) -> None:
    missing = build.a_moment(networks=("absent",))
    stated = stored(reported(build, missing).status)
    away = build.a_moment(networks=("absent",), present=Unreadable("Unavailable"), status=stated)
    status = reported(build, away).status
    assert condition(status, "Available")[1] == "NetworkNotFound"
    assert condition(status, "Ready")[1] == "NetworkNotFound"
    silent = build.a_moment(networks=("absent",), present=Unreadable("Unavailable"))
    assert condition(reported(build, silent).status, "Ready")[1] == "InstancesProvisioning"


def test_each_placement_that_begins_to_be_blocked_is_an_event(build: Builders) -> None:
    first = build.a_moment(placements={"moon": ("TYCHO",), "texas": ("DFW",)})
    stated = stored(reported(build, first).status)
    more = {"moon": ("TYCHO",), "texas": ("DFW",), "mars": ("OLYMPUS",)}
    seen = build.a_moment(placements=more, status=stated)
    events = [
        one for one in report(seen, carried_out(seen), build.now) if isinstance(one, RecordEvent)
    ]
    assert [one.message for one in events] == ["No location found for city codes: OLYMPUS"]


def test_a_blocker_that_users_can_act_on_is_an_event_once(build: Builders) -> None:
    seen = build.a_moment(networks=("absent",))
    planned = list(report(seen, carried_out(seen), build.now))
    (event,) = [one for one in planned if isinstance(one, RecordEvent)]
    assert event.reason == "NetworkNotFound"
    assert event.after == planned[0]
    again = build.a_moment(networks=("absent",), status=stored(reported(build, seen).status))
    assert not [
        one for one in report(again, carried_out(again), build.now) if isinstance(one, RecordEvent)
    ]


@pytest.mark.fault("F1")
@pytest.mark.parametrize("malformed", ["text", [None, 3, {"status": "True"}], {"type": "Ready"}])
def test_a_malformed_deployment_status_breaks_nothing(build: Builders, malformed: Json) -> None:
    odd = build.a_deployment(
        "texas",
        "DFW",
        status={"conditions": malformed, "replicas": "many", "readyReplicas": -4},
    )
    status = reported(build, build.a_moment(deployments=(odd,))).status
    assert (status["replicas"], status["readyReplicas"]) == (0, 0)
    assert condition(status, "Ready")[0] == "False"


@pytest.mark.spec("M-21")
def test_a_deployment_moved_in_this_pass_has_not_answered_yet(build: Builders) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    status = reported(build, build.a_moment(deployments=(runs,)), Effect.WRITTEN).status
    assert (status["updatedReplicas"], status["currentReplicas"]) == (0, 0)
    assert status["readyReplicas"] == 1


@pytest.mark.fault("F1")
def test_a_deployment_without_placement_is_counted_and_keeps_it_from_being_ready(
    build: Builders,
) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    stray = build.a_deployment("", "DFW", name="stray", status=build.ready())
    status = reported(build, build.a_moment(deployments=(runs, stray))).status
    assert (status["deployments"], status["replicas"]) == (2, 2)
    assert condition(status, "Ready")[:2] == ("False", "InstancesProvisioning")
    (only,) = member_list(stored(status), "placements")
    assert isinstance(only, dict)
    assert only["name"] == "texas"
    assert condition(only, "Ready")[0] == "True"


@pytest.mark.fault("F6")
def test_of_two_entries_of_one_placement_the_first_counts_and_one_is_left(build: Builders) -> None:
    runs = build.a_deployment("texas", "DFW", status=build.ready())
    first = stored(reported(build, build.a_moment(deployments=(runs,))).status)
    entries = member_list(first, "placements")
    entries += [{"name": "texas", "replicas": 99}, {"name": "elsewhere"}, "x"]
    again = reported(build, build.a_moment(deployments=(runs,), status=first)).status
    assert len(member_list(stored(again), "placements")) == 1
