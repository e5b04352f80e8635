"""The rollout planner, rule by rule and row by row (cell.md 5.4)."""

from __future__ import annotations

import random

import pytest
from cell_builders.candidates import (
    DEPLOYMENT,
    OTHER,
    UID,
    a_candidate,
    in_slot,
    slots_of,
)

from compute_cell_operator.deployment.plan.rollout import InstanceDemand, plan_instances
from compute_cell_operator.deployment.plan.steps import (
    CreateStep,
    HoldStep,
    Purpose,
    RemoveStep,
    WaitStep,
)
from compute_cell_operator.deployment.slots import Slots, derive_slots


def acts(slots: Slots, desired: int, **demand: bool) -> list[str]:
    """The plan in words: `create 0`, `delete web-1 to recreate`, `wait 1`, `hold 2`."""

    def describe(step: object) -> str:
        match step:
            case CreateStep(ordinal):
                return f"create {ordinal}"
            case RemoveStep(candidate, Purpose.RECREATE):
                return f"delete {candidate.name} to recreate"
            case RemoveStep(candidate, _):
                return f"delete {candidate.name}"
            case WaitStep(ordinal, _):
                return f"wait {ordinal}"
            case HoldStep(ordinal):
                return f"hold {ordinal}"
            case _:
                raise AssertionError(step)

    return [describe(step) for step in plan_instances(slots, InstanceDemand(desired, **demand))]


@pytest.mark.spec("C-01")
def test_a_fresh_deployment_creates_its_first_slot_and_holds_the_second() -> None:
    assert acts(slots_of(), 2) == ["create 0", "hold 1"]
    assert acts(slots_of(), 1) == ["create 0"]


@pytest.mark.parametrize(
    ("states", "desired", "expected"),
    [
        (("ok", "fresh-unready"), 3, ["wait 1", "hold 2"]),
        (("ok", "terminating"), 3, ["wait 1", "hold 2"]),
        (("stale-ready", "stale-ready"), 2, ["delete web-1 to recreate"]),
        (("stale-ready", "terminating"), 2, ["wait 1"]),
        (("stale-ready", "missing"), 2, ["create 1"]),
        (("stale-ready", "ok"), 2, ["delete web-0 to recreate"]),
        (("stale-ready", "stale-unready"), 2, ["delete web-1 to recreate"]),
        (("stale-unready",), 1, ["delete web-0 to recreate"]),
        (("stale-unready", "fresh-unready"), 2, ["wait 1"]),
        (("stale-unready", "missing"), 2, ["delete web-0 to recreate"]),
        (("missing", "terminating"), 2, ["create 0"]),
        (("fresh-unready", "ok"), 1, ["delete web-1", "wait 0"]),
        (("stale-unready", "ok"), 1, ["delete web-1", "delete web-0 to recreate"]),
        (("stale-ready", "ok"), 1, ["delete web-1", "delete web-0 to recreate"]),
        (("ok", "ok"), 2, []),
    ],
)
def test_every_row_of_the_table(states: tuple[str, ...], desired: int, expected: list[str]) -> None:
    assert acts(slots_of(*states), desired) == expected


@pytest.mark.spec("C-02")
def test_creates_ascend_and_gaps_come_first() -> None:
    assert acts(slots_of("ok"), 3) == ["create 1", "hold 2"]
    assert acts(slots_of("ok", "missing", "ok", "missing"), 4) == ["create 1", "hold 3"]


@pytest.mark.spec("C-03")
@pytest.mark.parametrize(
    "in_flight", ["fresh-unready", "terminating", "not-judged-unready", "foreign"]
)
def test_what_is_in_flight_holds_the_create_above_it(in_flight: str) -> None:
    assert acts(slots_of("ok", in_flight), 3) == ["wait 1", "hold 2"]
    assert acts(slots_of("ok", "missing", in_flight), 3) == ["create 1"]
    assert acts(slots_of("stale-unready", "missing", in_flight), 3) == ["wait 2", "hold 1"]


def test_a_roll_begins_at_the_highest_ordinal_and_takes_one_at_a_time() -> None:
    assert acts(slots_of("stale-ready", "stale-ready", "stale-ready"), 3) == [
        "delete web-2 to recreate"
    ]
    assert acts(slots_of("stale-ready", "stale-ready", "terminating"), 3) == ["wait 2"]
    assert acts(slots_of("stale-ready", "stale-ready", "missing"), 3) == ["create 2"]
    assert acts(slots_of("stale-ready", "stale-ready", "fresh-unready"), 3) == ["wait 2"]
    assert acts(slots_of("stale-ready", "stale-ready", "ok"), 3) == ["delete web-1 to recreate"]


@pytest.mark.spec("C-05", "C-06")
def test_broken_instances_of_an_old_template_go_first_the_lowest_of_them() -> None:
    assert acts(slots_of("stale-ready", "stale-unready", "stale-unready"), 3) == [
        "delete web-1 to recreate"
    ]
    assert acts(slots_of("stale-ready", "fresh-unready", "stale-unready"), 3) == ["wait 1"]
    assert acts(slots_of("stale-ready", "ok", "stale-unready"), 3) == ["delete web-2 to recreate"]


@pytest.mark.spec("C-07")
def test_a_bad_template_in_flight_is_not_spread() -> None:
    assert acts(slots_of("stale-unready", "stale-ready", "fresh-unready"), 3) == ["wait 2"]


@pytest.mark.spec("C-08")
def test_surplus_is_removed_highest_first_and_without_a_wait() -> None:
    assert acts(slots_of("fresh-unready", "ok", "ok"), 1) == ["delete web-2", "wait 0"]
    assert acts(slots_of("fresh-unready", "ok", "terminating"), 1) == ["wait 0"]
    assert acts(slots_of("missing", "ok", "ok"), 1) == ["delete web-2", "create 0"]


def test_a_deleting_deployment_deletes_everything_at_once_and_creates_nothing() -> None:
    slots = slots_of("ok", "missing", "stale-unready", "terminating", "foreign")
    assert acts(slots, 0, is_deleting=True) == ["delete web-0", "delete web-2"]


@pytest.mark.spec("C-12")
@pytest.mark.parametrize("odd", [f"{DEPLOYMENT}-x", f"{DEPLOYMENT}-01", DEPLOYMENT, "else-0"])
def test_an_owned_instance_with_an_odd_name_is_a_stray(odd: str) -> None:
    slots = derive_slots(DEPLOYMENT, UID, [in_slot("ok", 0), a_candidate(odd)])
    assert acts(slots, 1) == [f"delete {odd}"]


@pytest.mark.parametrize("label", ["", "foo", "-1"])
def test_ownership_counts_and_labels_do_not(label: str) -> None:
    slots = derive_slots(DEPLOYMENT, UID, [a_candidate("web-0", label_uid=label)])
    assert acts(slots, 1) == []


def test_an_instance_that_lost_its_owner_reference_keeps_its_slot() -> None:
    slots = derive_slots(DEPLOYMENT, UID, [a_candidate("web-0", owner=None)])
    assert acts(slots, 1) == []
    assert slots.unowned == {"web-0"}


def test_instances_of_a_former_deployment_of_that_name_are_waited_for() -> None:
    old = a_candidate("web-0", owner=OTHER, label_uid=OTHER)
    slots = derive_slots(DEPLOYMENT, UID, [old])
    assert acts(slots, 2) == ["wait 0", "hold 1"]


def test_an_instance_without_an_owner_is_left_alone() -> None:
    stranger = a_candidate("other-0", owner=None, label_uid="")
    labelled = a_candidate("web-0", owner=None, label_uid="")
    slots = derive_slots(DEPLOYMENT, UID, [stranger, labelled])
    assert acts(slots, 1) == ["wait 0"]
    assert not slots.owned


def test_a_billion_replicas_are_planned_by_what_exists() -> None:
    assert acts(slots_of("ok", "ok"), 10**9) == ["create 2", "hold 3"]


@pytest.mark.spec("C-21")
def test_the_order_of_the_instances_makes_no_difference() -> None:
    present = [in_slot(state, n) for n, state in enumerate(("ok", "stale-ready", "stale-ready"))]
    expected = acts(derive_slots(DEPLOYMENT, UID, present), 3)
    for seed in range(5):
        shuffled = random.Random(seed).sample(present, k=len(present))  # noqa: S311 - order only
        assert acts(derive_slots(DEPLOYMENT, UID, shuffled), 3) == expected


def test_in_the_wrong_city_nothing_starts_and_surplus_still_goes() -> None:
    slots = slots_of("stale-unready", "missing", "ok")
    assert acts(slots, 2, is_wrong_city=True) == ["delete web-2"]


def test_surplus_of_strays_comes_before_slots_and_one_at_a_time() -> None:
    stray, high = a_candidate("web-x"), in_slot("ok", 4)
    slots = derive_slots(DEPLOYMENT, UID, [high, stray, in_slot("ok", 0)])
    assert acts(slots, 1) == ["delete web-x"]
    going = a_candidate("web-x", terminating=True)
    slots = derive_slots(DEPLOYMENT, UID, [high, going, in_slot("ok", 0)])
    assert acts(slots, 1) == []


@pytest.mark.spec("SU-09")
@pytest.mark.parametrize(
    ("states", "desired"),
    [
        ((), 2),
        (("ok",), 2),
        (("stale-ready", "stale-unready"), 2),
        (("fresh-unready", "terminating"), 3),
    ],
)
def test_a_suspended_deployment_gets_nothing_made_or_rolled(
    states: tuple[str, ...], desired: int
) -> None:
    assert acts(slots_of(*states), desired, is_suspended=True) == []


@pytest.mark.spec("SU-09")
def test_surplus_and_deletion_go_on_while_suspended() -> None:
    slots = slots_of("ok", "ok", "ok")
    assert acts(slots, 1, is_suspended=True) == ["delete web-2"]
    deleted = acts(slots, 0, is_suspended=True, is_deleting=True)
    assert deleted == ["delete web-0", "delete web-1", "delete web-2"]


@pytest.mark.spec("SU-10")
def test_after_the_resume_broken_ones_are_replaced_before_healthy_ones() -> None:
    slots = slots_of("stale-ready", "stale-unready", "stale-ready")
    assert acts(slots, 4) == ["delete web-1 to recreate"]
    assert acts(slots_of("ok", "stale-ready", "stale-ready"), 3) == ["delete web-2 to recreate"]
