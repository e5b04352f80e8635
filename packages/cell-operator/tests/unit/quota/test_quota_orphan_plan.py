"""Which listed claims are orphans, and which slots are checked (cell.md 12)."""

from __future__ import annotations

import pytest

from compute_cell_operator.planes import CELL, INSTANCE
from compute_cell_operator.quota.orphans.plan import (
    ListedClaim,
    ListedProject,
    ObservedSlot,
    OrphanedClaim,
    OrphanPlan,
    plan_orphans,
)
from compute_cell_operator.quota.project_ref import ClaimRef, ClaimSubject
from compute_operator_kit.core.keys import ObjectKey, Uid

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
REF = ClaimRef("acme", "shop", "instance-web-0")
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")
ELSEWHERE = ObjectKey(CELL, INSTANCE, "ns-other", "web-0")


def a_slot(uid: str = "", *, is_wanted: bool = False, key: ObjectKey = KEY) -> ObservedSlot:
    return ObservedSlot(key, Uid(uid) if uid else None, is_wanted=is_wanted)


def a_claim(
    here: ObservedSlot | None = None,
    recorded: ObservedSlot | None = None,
    *,
    uid: str = "u1",
    namespace: str = NS,
    ref: ClaimRef = REF,
) -> ListedClaim:
    return ListedClaim(ref, "claim", ClaimSubject(namespace, uid), here, recorded)


def plan(*claims: ListedClaim, started: dict[ClaimRef, ObjectKey] | None = None) -> OrphanPlan:
    return plan_orphans(ListedProject(claims, started or {}))


def test_a_claim_that_records_its_live_instance_needs_nothing() -> None:
    slot = a_slot("u1", is_wanted=True)
    assert plan(a_claim(slot, slot), started={REF: KEY}) == OrphanPlan(listed=1)


@pytest.mark.parametrize("recorded", ["", "gone"])
def test_a_claim_that_records_another_is_checked(recorded: str) -> None:
    slot = a_slot("u1", is_wanted=True)
    assert plan(a_claim(slot, slot, uid=recorded)) == OrphanPlan(1, checks=(KEY,))


def test_a_claim_that_records_another_namespace_is_checked() -> None:
    slot = a_slot("u1", is_wanted=True)
    assert plan(a_claim(slot, None, namespace="")).checks == (KEY,)


def test_the_claim_of_a_wanted_slot_stays_without_an_instance() -> None:
    slot = a_slot(is_wanted=True)
    assert plan(a_claim(slot, slot)) == OrphanPlan(listed=1)


def test_the_claim_of_a_surplus_slot_stays_while_its_instance_exists() -> None:
    slot = a_slot("u1", is_wanted=False)
    assert plan(a_claim(slot, slot)).orphans == ()


def test_the_claim_of_a_slot_that_is_neither_wanted_nor_filled_is_an_orphan() -> None:
    slot = a_slot()
    assert plan(a_claim(slot, slot)).orphans == (OrphanedClaim(REF, "claim", KEY),)


def test_a_claim_that_names_no_slot_is_an_orphan_without_one() -> None:
    assert plan(a_claim(None, None)).orphans == (OrphanedClaim(REF, "claim", None),)


def test_a_claim_elsewhere_stays_while_the_slot_it_names_is_filled() -> None:
    named = a_slot("u9", key=ELSEWHERE)
    assert plan(a_claim(None, named)) == OrphanPlan(listed=1)
    assert plan(a_claim(a_slot(), named)).orphans == ()


def test_a_claim_elsewhere_is_an_orphan_of_the_slot_it_names() -> None:
    named = a_slot(key=ELSEWHERE)
    assert plan(a_claim(None, named)).orphans == (OrphanedClaim(REF, "claim", ELSEWHERE),)


def test_a_started_instance_without_a_claim_is_checked_once() -> None:
    other = ClaimRef("acme", "shop", "instance-web-1")
    second = ObjectKey(CELL, INSTANCE, NS, "web-1")
    slot = a_slot("u1", is_wanted=True)
    planned = plan(a_claim(slot, slot), started={REF: KEY, other: second})
    assert planned == OrphanPlan(listed=1, checks=(second,))


def test_plans_of_several_projects_are_joined() -> None:
    orphan = OrphanedClaim(REF, "claim", KEY)
    first, second = OrphanPlan(3, (KEY,), (orphan,)), OrphanPlan(4)
    assert first.join(second) == OrphanPlan(7, (KEY,), (orphan,))
