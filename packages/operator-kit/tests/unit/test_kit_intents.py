from __future__ import annotations

from datetime import timedelta

import pytest

from compute_operator_kit.apply.write_memory import ObjectSection, WriteMemory
from compute_operator_kit.client.interface import Selector
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.keys import PlaneName, Uid
from compute_operator_kit.core.objects import OwnerReference
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    OwnedFields,
    Plan,
    RecordEvent,
    RemoveFinalizer,
    RequeueAfter,
    RequireExists,
    RequireGone,
    RequireNone,
    RequireUnchanged,
    build_new,
)
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome, soonest
from compute_operator_kit.testing.fakes import A_KIND, a_key

SECOND = timedelta(seconds=1)


def test_equal_intents_are_equal_values_and_print_themselves() -> None:
    one, other = (Ensure(a_key(), OwnedFields(labels={"a": "b"}), "Missing") for _ in range(2))
    assert one == other
    assert "Missing" in repr(one)
    assert Plan.of(one) == Plan.of(other)


def test_plans_are_joined_in_order_and_know_their_writes() -> None:
    made = Ensure(a_key(), OwnedFields(), "Missing")
    wait = RequeueAfter(a_key(), "Terminating", SECOND)
    told = RecordEvent(a_key(), Uid("u"), "Made", "made", action="Making")
    plan = Plan.of(made) + Plan.of(wait, told)
    assert list(plan) == [made, wait, told]
    assert plan.writes == (made,)
    assert len(plan) == 3


def test_guards_are_asked_in_one_order() -> None:
    key = a_key()
    none = RequireNone(PlaneName("hub"), A_KIND, {"a": "b"})
    gone, same = RequireGone(key), RequireUnchanged(key, Uid("u"))
    delete = Delete(
        key, Uid("u"), "Unused", require_none=none, require_gone=gone, require_unchanged=same
    )
    assert delete.guards == (same, gone, none)
    assert RemoveFinalizer(key, Uid("u"), "f", "Gone", require_none=none).guards == (none,)
    under = RequireExists(key)
    assert Ensure(key, OwnedFields(), "Missing", requires=under).guards == (under,)
    assert Ensure(key, OwnedFields(), "Missing").guards == ()


def test_a_new_object_is_born_with_more_than_is_compared_later() -> None:
    owner = OwnerReference("v1", "Note", "root", Uid("u1"), controller=True)
    intent = Ensure(
        a_key(),
        OwnedFields(
            labels={"a": "1", "not": None}, owners=(owner,), merge={"spec": {"x": 1, "y": None}}
        ),
        "Missing",
        initial={"spec": {"y": 2, "z": 3}, "metadata": {"finalizers": ["f"]}},
    )
    assert build_new(intent) == {
        "apiVersion": "example.datumapis.com/v1",
        "kind": "Note",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {"a": "1"},
            "finalizers": ["f"],
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Note",
                    "name": "root",
                    "uid": "u1",
                    "controller": True,
                }
            ],
        },
        "spec": {"x": 1, "z": 3},
    }


def test_what_we_own_replaces_what_it_would_be_born_with() -> None:
    wanted = OwnedFields(merge={"spec": {"size": 2}})
    made = build_new(Ensure(a_key(), wanted, "Missing", initial={"spec": {"size": {"a": 1}}}))
    assert made["spec"] == {"size": 2}


def test_members_owned_as_a_whole_are_created_as_they_are() -> None:
    wanted = OwnedFields(replace={"spec": {"mode": None, "env": {"b": None}}})
    made = build_new(Ensure(a_key(), wanted, "Missing", initial={"spec": {"size": 1}}))
    assert made["spec"] == {"mode": None, "env": {"b": None}}


def test_building_an_object_does_not_change_what_it_was_built_from() -> None:
    template = {"spec": {"env": {"a": 1}}}
    build_new(
        Ensure(a_key(), OwnedFields(merge={"spec": {"env": {"b": 2}}}), "x", initial=template)
    )
    assert template == {"spec": {"env": {"a": 1}}}


def test_the_soonest_wait_wins() -> None:
    wait = RequeueAfter(a_key(), "x", SECOND)
    applied = Applied(
        (
            Outcome(wait, Effect.NOTED, wait=2 * SECOND),
            Outcome(wait, Effect.HELD, wait=SECOND),
            Outcome(wait, Effect.EQUAL),
        )
    )
    assert applied.wait == SECOND
    assert soonest([None, None]) is None


def test_a_provisional_difference_waits_from_when_it_first_arose() -> None:
    memory, key = WriteMemory(), a_key()
    defer_for = timedelta(milliseconds=200)
    at = timedelta(milliseconds=1000)
    assert memory.defer(key, ObjectSection.STATUS, defer_for, at) == defer_for
    assert memory.defer(key, ObjectSection.STATUS, defer_for, at + defer_for / 2) == defer_for / 2
    assert memory.defer(key, ObjectSection.STATUS, defer_for, at + defer_for) == timedelta()
    assert memory.defer(key, ObjectSection.OBJECT, defer_for, at + defer_for) == defer_for
    memory.end_deferral(key, ObjectSection.STATUS)
    assert memory.defer(key, ObjectSection.STATUS, defer_for, at + defer_for) == defer_for


def test_what_was_held_long_ago_is_not_held_against_a_new_difference() -> None:
    memory, key = WriteMemory(), a_key()
    defer_for = timedelta(milliseconds=200)
    memory.defer(key, ObjectSection.STATUS, defer_for, SECOND)
    assert memory.defer(key, ObjectSection.STATUS, defer_for, timedelta(hours=1)) == defer_for
    for number in range(3000):
        at = timedelta(hours=2) + number * SECOND
        memory.defer(a_key(f"n{number}"), ObjectSection.STATUS, defer_for, at)
    assert len(memory) < 1100


def test_a_deferral_of_zero_defers_nothing() -> None:
    assert WriteMemory().defer(a_key(), ObjectSection.STATUS, timedelta(), SECOND) == timedelta()


@pytest.mark.fault("E5")
def test_a_residue_is_known_until_either_side_changes() -> None:
    memory, key = WriteMemory(), a_key()
    memory.set_residue(key, ObjectSection.OBJECT, b"mark")
    assert memory.is_residue(key, ObjectSection.OBJECT, lambda: b"mark")
    assert not memory.is_residue(key, ObjectSection.OBJECT, lambda: b"other")
    assert not memory.is_residue(key, ObjectSection.STATUS, lambda: b"mark")
    memory.drop_residue(key, ObjectSection.OBJECT)
    assert not memory.is_residue(key, ObjectSection.OBJECT, lambda: b"mark")


def test_what_is_gone_is_forgotten() -> None:
    memory = WriteMemory()
    memory.defer(a_key(plane="gone"), ObjectSection.STATUS, SECOND, SECOND)
    memory.set_residue(a_key(plane="gone"), ObjectSection.STATUS, b"x")
    memory.set_residue(a_key(plane="kept"), ObjectSection.STATUS, b"x")
    memory.forget(lambda key: key.plane == "gone")
    assert len(memory) == 1


def test_a_selector_takes_label_values_and_nothing_that_reads_as_more() -> None:
    assert Selector.of_labels({"b": "2", "a": ""}).labels == "a=,b=2"
    for value in ("x,y=z", "a b", "x)", "-a", "a" * 64):
        with pytest.raises(InvariantError, match="not a label value"):
            Selector.of_labels({"a": value})
