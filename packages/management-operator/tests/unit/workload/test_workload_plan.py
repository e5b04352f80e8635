"""Which deployments a Workload has, decided without a server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from management_builders.workload import Builders

from compute_api_types import labels
from compute_management_operator.workload.observe import NetworkName, WorkloadChild
from compute_management_operator.workload.plan import (
    NameHeld,
    NameTaken,
    derive_city_states,
    leave_out_events,
    leftovers,
    plan,
)
from compute_operator_kit.cache.optional_kinds import Off
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.intents.intents import (
    AddFinalizer,
    Delete,
    Ensure,
    Plan,
    RecordEvent,
    RemoveFinalizer,
    RequireExists,
    RequireNone,
    RequireUnchanged,
)

TWO_CITIES = {"texas": ("DFW", "LHR")}


@pytest.fixture
def build() -> Builders:
    return Builders()


def created(decided: Plan) -> list[str]:
    return [one.key.name for one in decided if isinstance(one, Ensure) and one.uid is None]


def updated(decided: Plan) -> list[str]:
    return [one.key.name for one in decided if isinstance(one, Ensure) and one.uid is not None]


def deleted(decided: Plan) -> list[str]:
    return [one.key.name for one in decided if isinstance(one, Delete)]


@pytest.mark.spec("M-06")
def test_the_first_pass_adds_only_the_finalizer(build: Builders) -> None:
    decided = plan(build.a_moment(has_finalizer=False))
    assert [type(one) for one in decided] == [AddFinalizer]


@pytest.mark.spec("M-07")
def test_every_placement_and_city_gets_one_deployment(build: Builders) -> None:
    decided = plan(build.a_moment(placements={"texas": ("DFW",), "abroad": ("LHR", "ORD")}))
    assert created(decided) == ["web-texas-dfw", "web-abroad-lhr", "web-abroad-ord"]
    first = next(one for one in decided if isinstance(one, Ensure))
    assert first.desired.replace == {
        "spec": {
            "workloadRef": {"name": "web", "uid": build.uid},
            "placementName": "texas",
            "cityCode": "DFW",
            "template": build.template,
            "scaleSettings": {"minReplicas": 1},
        }
    }
    assert first.desired.labels == {labels.WORKLOAD_UID: build.uid, labels.WORKLOAD_NAME: "web"}
    (owner,) = first.desired.owners
    assert (owner.uid, owner.controller, owner.block_owner_deletion) == (build.uid, True, True)


@pytest.mark.spec("M-07")
@pytest.mark.parametrize("place", ["", "ns-1"])
def test_a_deployment_is_born_with_what_federation_records_and_is_not_held_to_it(
    build: Builders, place: str
) -> None:
    seen = replace(build.a_moment(), hub_namespace=place)
    born = next(one for one in plan(seen) if isinstance(one, Ensure))
    metadata = {
        "annotations": {labels.FEDERATION_NAMESPACE: place},
        "finalizers": [labels.FEDERATION_FINALIZER],
    }
    assert born.initial == ({"metadata": metadata} if place else {})
    assert not born.desired.annotations
    there = replace(seen, deployments=(build.a_deployment("texas", "DFW"),))
    kept = next(one for one in plan(there) if isinstance(one, Ensure))
    assert not kept.initial


@pytest.mark.spec("FS-01")
def test_only_a_deployment_that_is_missing_again_costs_a_read_of_its_workload(
    build: Builders,
) -> None:
    seen = build.a_moment()
    first = next(one for one in plan(seen) if isinstance(one, Ensure))
    assert first.requires is None
    reported = replace(seen, is_reported=True)
    again = next(one for one in plan(reported) if isinstance(one, Ensure))
    assert again.requires == RequireExists(seen.key, lock=seen.key, uid=seen.metadata.uid)


@pytest.mark.spec("M-07")
def test_a_long_name_of_a_workload_is_cut_in_the_label_and_whole_beside_it(build: Builders) -> None:
    long = "a-very-long-workload-name-that-nobody-should-choose-but-the-api-server-accepts-it"
    seen = build.a_moment()
    seen = replace(seen, key=ObjectKey(seen.key.plane, seen.key.kind, seen.key.namespace, long))
    made = next(one for one in plan(seen) if isinstance(one, Ensure))
    short = "a-very-long-workload-name-that-nobody-shou-17a842b1a62774ebd394"
    assert made.desired.labels[labels.WORKLOAD_NAME] == short
    assert made.desired.annotations == {labels.WORKLOAD_NAME: long}


def test_a_created_deployment_is_an_event_after_the_write(build: Builders) -> None:
    decided = list(plan(build.a_moment()))
    assert isinstance(decided[1], RecordEvent)
    assert decided[1].after == decided[0]


@pytest.mark.spec("M-08")
def test_a_city_without_location_gets_no_deployment_and_holds_up_no_other(build: Builders) -> None:
    decided = plan(build.a_moment(placements={"texas": ("DFW",), "moon": ("TYCHO",)}))
    assert created(decided) == ["web-texas-dfw"]


@pytest.mark.spec("M-09")
@pytest.mark.parametrize("served", [frozenset[str](), Unreadable("Unavailable")])
def test_what_runs_stays_whatever_locations_say(
    build: Builders, served: frozenset[str] | Unreadable
) -> None:
    running = build.a_deployment("texas", "DFW")
    decided = plan(build.a_moment(deployments=(running,), served=served))
    assert updated(decided) == ["web-texas-dfw"]
    assert not deleted(decided)


@pytest.mark.spec("M-09")
def test_unreadable_locations_create_nothing(build: Builders) -> None:
    assert not plan(build.a_moment(served=Unreadable("Unavailable"))).writes


def test_without_networking_every_city_is_served(build: Builders) -> None:
    decided = plan(build.a_moment(placements={"moon": ("TYCHO",)}, served=Off(), present=Off()))
    assert created(decided) == ["web-moon-tycho"]


def test_a_city_that_cannot_be_a_label_is_never_served(build: Builders) -> None:
    assert not plan(build.a_moment(placements={"a": ("New York",)}, served=Off())).writes


@pytest.mark.spec("M-10")
def test_a_city_that_left_the_spec_goes_after_a_fresh_look(build: Builders) -> None:
    stays, goes = build.a_deployment("texas", "DFW"), build.a_deployment("texas", "LHR")
    seen = build.a_moment(deployments=(stays, goes))
    (removed,) = [one for one in plan(seen) if isinstance(one, Delete)]
    assert (removed.key.name, removed.uid) == (goes.name, goes.metadata.uid)
    assert removed.require_unchanged == RequireUnchanged(seen.key, build.uid, generation=3)


def test_an_orphan_on_its_way_out_is_not_deleted_twice(build: Builders) -> None:
    going = build.a_deployment("texas", "LHR", is_deleting=True)
    assert not deleted(plan(build.a_moment(deployments=(going,))))


@pytest.mark.spec("M-11")
def test_a_deployment_is_found_by_identity_under_any_name(build: Builders) -> None:
    renamed = build.a_deployment("texas", "DFW", name="somehow-else")
    decided = plan(build.a_moment(deployments=(renamed,)))
    assert updated(decided) == ["somehow-else"]
    assert not created(decided)


@pytest.mark.spec("M-12")
def test_a_name_of_another_workload_makes_way_for_the_hashed_one(build: Builders) -> None:
    other = build.a_deployment("x", "Y", name="web-texas-dfw", workload_uid="another")
    (name,) = created(plan(build.a_moment(others=(other,))))
    assert name.startswith("web-texas-dfw-")
    assert len(name) == len("web-texas-dfw-") + 10


@pytest.mark.fault("F3")
def test_two_identities_of_one_pass_never_share_a_name(build: Builders) -> None:
    decided = plan(
        build.a_moment(placements={"a-b": ("c",), "a": ("b-c",)}, served=frozenset({"c", "b-c"}))
    )
    first, second = created(decided)
    assert first == "web-a-b-c"
    assert second != first


@pytest.mark.spec("M-13")
def test_both_names_taken_by_others_is_a_collision(build: Builders) -> None:
    free = created(plan(build.a_moment(others=(_holding(build, "web-texas-dfw"),))))[0]
    seen = build.a_moment(others=(_holding(build, "web-texas-dfw"), _holding(build, free)))
    assert list(derive_city_states(seen).values()) == [NameTaken("web-texas-dfw")]
    assert not plan(seen).writes
    healed = build.a_moment(others=(_holding(build, free),))
    assert created(plan(healed)) == ["web-texas-dfw"]


def _holding(build: Builders, name: str, uid: str = "another") -> WorkloadChild:
    return build.a_deployment("x", "Y", name=name, workload_uid=uid)


def test_a_name_held_by_one_of_ours_that_goes_is_waited_for(build: Builders) -> None:
    hashed = created(plan(build.a_moment(others=(_holding(build, "web-texas-dfw"),))))[0]
    going = build.a_deployment("old", "DFW", name=hashed, is_deleting=True)
    seen = build.a_moment(deployments=(going,), others=(_holding(build, "web-texas-dfw"),))
    assert list(derive_city_states(seen).values()) == [NameHeld()]
    assert not created(plan(seen))


@pytest.mark.spec("M-16")
def test_with_a_network_missing_orphans_go_and_nothing_else_moves(build: Builders) -> None:
    runs, goes = build.a_deployment("texas", "DFW"), build.a_deployment("texas", "LHR")
    decided = plan(build.a_moment(deployments=(runs, goes), networks=("absent",)))
    assert deleted(decided) == [goes.name]
    assert not created(decided)
    assert not updated(decided)


def test_without_networking_no_network_is_looked_for(build: Builders) -> None:
    assert created(plan(build.a_moment(present=Off()))) == ["web-texas-dfw"]


def test_unreadable_networks_create_nothing_and_existing_deployments_are_updated(
    build: Builders,
) -> None:
    away = Unreadable("Unavailable")
    runs = build.a_deployment("texas", "DFW")
    decided = plan(build.a_moment(present=away, deployments=(runs,), placements=TWO_CITIES))
    assert updated(decided) == [runs.name]
    assert not created(decided)
    assert not deleted(decided)


def test_a_workload_without_networks_does_not_wait_for_them(build: Builders) -> None:
    away = Unreadable("Unavailable")
    assert created(plan(build.a_moment(present=away, networks=()))) == ["web-texas-dfw"]


def test_of_two_deployments_of_one_city_a_live_one_counts(build: Builders) -> None:
    going = build.a_deployment("texas", "DFW", name="a", is_deleting=True)
    live = build.a_deployment("texas", "DFW", name="b")
    double = build.a_deployment("texas", "DFW", name="c")
    seen = build.a_moment(deployments=(going, live, double))
    assert updated(plan(seen)) == ["b"]
    assert not deleted(plan(seen))
    assert [one.name for one in leftovers(seen)] == ["a", "c"]


def test_a_network_of_another_namespace_is_looked_for_there(build: Builders) -> None:
    elsewhere = frozenset({NetworkName("other", "default")})
    assert not plan(build.a_moment(present=elsewhere)).writes


@pytest.mark.spec("M-23")
def test_a_deleted_workload_takes_its_own_deployments_along(build: Builders) -> None:
    mine = build.a_deployment("texas", "DFW")
    going = build.a_deployment("texas", "LHR", is_deleting=True)
    decided = plan(build.a_moment(is_deleting=True, deployments=(mine, going)))
    assert deleted(decided) == [mine.name]
    assert not any(isinstance(one, RemoveFinalizer) for one in decided)


@pytest.mark.spec("M-23")
def test_the_finalizer_goes_when_a_fresh_list_is_empty(build: Builders) -> None:
    seen = build.a_moment(is_deleting=True)
    (released,) = plan(seen)
    assert isinstance(released, RemoveFinalizer)
    assert isinstance(released.require_none, RequireNone)
    assert released.require_none.counts_deleting
    assert released.require_none.labels == {labels.WORKLOAD_UID: build.uid}


def test_a_deleting_workload_without_our_finalizer_is_done(build: Builders) -> None:
    assert plan(build.a_moment(is_deleting=True, has_finalizer=False)) == Plan()


@pytest.mark.spec("M-25")
def test_a_deployment_that_goes_is_recreated_only_once_it_is_gone(build: Builders) -> None:
    going = build.a_deployment("texas", "DFW", is_deleting=True)
    assert not plan(build.a_moment(deployments=(going,))).writes
    assert created(plan(build.a_moment())) == ["web-texas-dfw"]


@pytest.mark.spec("FS-06")
def test_no_event_is_about_what_goes_with_its_project(build: Builders) -> None:
    there = (build.a_deployment("texas", "DFW"),)
    seen = replace(build.a_moment(is_deleting=True), deployments=there)
    decided = plan(seen)
    assert leave_out_events(seen, decided) == decided
    going = replace(seen, is_project_deleting=True)
    assert [type(one) for one in leave_out_events(going, decided)] == [Delete]


@pytest.mark.spec("M-25")
def test_nothing_is_created_in_a_project_that_goes(build: Builders) -> None:
    assert not plan(build.a_moment(is_project_deleting=True)).writes


def test_equal_input_gives_an_equal_plan(build: Builders) -> None:
    assert plan(build.a_moment()) == plan(build.a_moment())
