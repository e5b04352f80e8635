"""What a sweep makes of the claims it found (cell.md 12)."""

from __future__ import annotations

import pytest

from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.found import Recorded
from compute_cell_operator.quota_gate.place import Place
from compute_cell_operator.quota_gate.sweep import (
    Leftover,
    Listed,
    SlotSeen,
    SweepPlan,
    Swept,
    plan_sweep,
)
from compute_operator_kit.keys import ObjectKey, Uid

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
PLACE = Place("acme", "shop", "instance-web-0")
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")
ELSEWHERE = ObjectKey(CELL, INSTANCE, "ns-other", "web-0")


def a_slot(uid: str = "", *, is_wanted: bool = False, key: ObjectKey = KEY) -> SlotSeen:
    return SlotSeen(key, Uid(uid) if uid else None, is_wanted=is_wanted)


def a_claim(
    here: SlotSeen | None = None,
    named: SlotSeen | None = None,
    *,
    uid: str = "u1",
    namespace: str = NS,
    place: Place = PLACE,
) -> Listed:
    return Listed(place, "claim", Recorded(namespace, uid), here, named)


def sweep(*found: Listed, started: dict[Place, ObjectKey] | None = None) -> SweepPlan:
    return plan_sweep(Swept(found, started or {}))


def test_a_claim_that_records_its_live_instance_needs_nothing() -> None:
    slot = a_slot("u1", is_wanted=True)
    assert sweep(a_claim(slot, slot), started={PLACE: KEY}) == SweepPlan(looked_at=1)


@pytest.mark.parametrize("recorded", ["", "gone"])
def test_a_claim_that_records_another_is_looked_at(recorded: str) -> None:
    slot = a_slot("u1", is_wanted=True)
    assert sweep(a_claim(slot, slot, uid=recorded)) == SweepPlan(1, suspects=(KEY,))


def test_a_claim_that_records_another_namespace_is_looked_at() -> None:
    slot = a_slot("u1", is_wanted=True)
    assert sweep(a_claim(slot, None, namespace="")).suspects == (KEY,)


def test_the_claim_of_a_wanted_slot_stays_without_an_instance() -> None:
    slot = a_slot(is_wanted=True)
    assert sweep(a_claim(slot, slot)) == SweepPlan(looked_at=1)


def test_the_claim_of_a_surplus_slot_stays_while_its_instance_exists() -> None:
    slot = a_slot("u1", is_wanted=False)
    assert sweep(a_claim(slot, slot)).leftovers == ()


def test_the_claim_of_a_slot_that_is_neither_wanted_nor_filled_is_left_behind() -> None:
    slot = a_slot()
    assert sweep(a_claim(slot, slot)).leftovers == (Leftover(PLACE, "claim", KEY),)


def test_a_claim_that_names_no_slot_is_left_behind_without_one() -> None:
    assert sweep(a_claim(None, None)).leftovers == (Leftover(PLACE, "claim", None),)


def test_a_claim_in_a_strange_place_stays_while_the_slot_it_names_is_filled() -> None:
    named = a_slot("u9", key=ELSEWHERE)
    assert sweep(a_claim(None, named)) == SweepPlan(looked_at=1)
    assert sweep(a_claim(a_slot(), named)).leftovers == ()


def test_a_claim_in_a_strange_place_is_left_behind_under_the_slot_it_names() -> None:
    named = a_slot(key=ELSEWHERE)
    assert sweep(a_claim(None, named)).leftovers == (Leftover(PLACE, "claim", ELSEWHERE),)


def test_a_started_instance_without_a_claim_is_looked_at_once() -> None:
    other = Place("acme", "shop", "instance-web-1")
    second = ObjectKey(CELL, INSTANCE, NS, "web-1")
    slot = a_slot("u1", is_wanted=True)
    found = sweep(a_claim(slot, slot), started={PLACE: KEY, other: second})
    assert found == SweepPlan(looked_at=1, suspects=(second,))


def test_findings_of_several_projects_are_judged_as_one() -> None:
    left = Leftover(PLACE, "claim", KEY)
    first, second = SweepPlan(3, (KEY,), (left,)), SweepPlan(4)
    assert first.join(second) == SweepPlan(7, (KEY,), (left,))
