from __future__ import annotations

from datetime import timedelta

import pytest

from compute_operator_kit.errors import InvariantError
from compute_operator_kit.holding import Memory, Part
from compute_operator_kit.intents import (
    Delete,
    Emit,
    Ensure,
    IfGone,
    IfNone,
    IfUnchanged,
    OnlyUnder,
    Owned,
    Plan,
    RemoveFinalizer,
    Wait,
    build_new,
)
from compute_operator_kit.keys import PlaneName, Uid
from compute_operator_kit.kube import Selector
from compute_operator_kit.objects import OwnerReference
from compute_operator_kit.outcomes import Applied, Effect, Outcome, soonest
from compute_operator_kit.testing import A_KIND, a_key

SECOND = timedelta(seconds=1)


def test_equal_intents_are_equal_values_and_print_themselves() -> None:
    one, other = (Ensure(a_key(), Owned(labels={"a": "b"}), "Missing") for _ in range(2))
    assert one == other
    assert "Missing" in repr(one)
    assert Plan.of(one) == Plan.of(other)


def test_plans_are_joined_in_order_and_know_their_writes() -> None:
    made = Ensure(a_key(), Owned(), "Missing")
    wait = Wait(a_key(), "Terminating", SECOND)
    told = Emit(a_key(), Uid("u"), "Made", "made", action="Making")
    plan = Plan.of(made) + Plan.of(wait, told)
    assert list(plan) == [made, wait, told]
    assert plan.writes == (made,)
    assert len(plan) == 3


def test_guards_are_asked_in_one_order() -> None:
    key = a_key()
    none = IfNone(PlaneName("hub"), A_KIND, {"a": "b"})
    gone, same = IfGone(key), IfUnchanged(key, Uid("u"))
    delete = Delete(key, Uid("u"), "Unused", if_none=none, if_gone=gone, if_unchanged=same)
    assert delete.guards == (same, gone, none)
    assert RemoveFinalizer(key, Uid("u"), "f", "Gone", if_none=none).guards == (none,)
    under = OnlyUnder(key)
    assert Ensure(key, Owned(), "Missing", only_under=under).guards == (under,)
    assert Ensure(key, Owned(), "Missing").guards == ()


def test_a_new_object_is_born_with_more_than_is_compared_later() -> None:
    owner = OwnerReference("v1", "Note", "root", Uid("u1"), controller=True)
    intent = Ensure(
        a_key(),
        Owned(labels={"a": "1", "not": None}, owners=(owner,), parts={"spec": {"x": 1, "y": None}}),
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
    wanted = Owned(parts={"spec": {"size": 2}})
    made = build_new(Ensure(a_key(), wanted, "Missing", initial={"spec": {"size": {"a": 1}}}))
    assert made["spec"] == {"size": 2}


def test_what_is_owned_whole_is_created_as_it_is() -> None:
    wanted = Owned(whole={"spec": {"mode": None, "env": {"b": None}}})
    made = build_new(Ensure(a_key(), wanted, "Missing", initial={"spec": {"size": 1}}))
    assert made["spec"] == {"mode": None, "env": {"b": None}}


def test_building_an_object_does_not_change_what_it_was_built_from() -> None:
    template = {"spec": {"env": {"a": 1}}}
    build_new(Ensure(a_key(), Owned(parts={"spec": {"env": {"b": 2}}}), "x", initial=template))
    assert template == {"spec": {"env": {"a": 1}}}


def test_the_soonest_wait_wins() -> None:
    wait = Wait(a_key(), "x", SECOND)
    applied = Applied(
        (
            Outcome(wait, Effect.NOTED, wait=2 * SECOND),
            Outcome(wait, Effect.HELD, wait=SECOND),
            Outcome(wait, Effect.EQUAL),
        )
    )
    assert applied.wait == SECOND
    assert soonest([None, None]) is None


def test_the_last_outcome_of_an_intent_is_the_one_that_is_told() -> None:
    wait = Wait(a_key(), "x", SECOND)
    last = Outcome(wait, Effect.NOTED)
    assert Applied((Outcome(wait, Effect.HELD), last)).of(wait) is last
    assert Applied().of(wait) is None


def test_a_provisional_difference_waits_from_when_it_first_arose() -> None:
    memory, key = Memory(), a_key()
    settle = timedelta(milliseconds=200)
    at = timedelta(milliseconds=1000)
    assert memory.hold(key, Part.STATUS, settle, at) == settle
    assert memory.hold(key, Part.STATUS, settle, at + settle / 2) == settle / 2
    assert memory.hold(key, Part.STATUS, settle, at + settle) == timedelta()
    assert memory.hold(key, Part.OBJECT, settle, at + settle) == settle
    memory.settle(key, Part.STATUS)
    assert memory.hold(key, Part.STATUS, settle, at + settle) == settle


def test_what_was_held_long_ago_is_not_held_against_a_new_difference() -> None:
    memory, key = Memory(), a_key()
    settle = timedelta(milliseconds=200)
    memory.hold(key, Part.STATUS, settle, SECOND)
    assert memory.hold(key, Part.STATUS, settle, timedelta(hours=1)) == settle
    for number in range(3000):
        at = timedelta(hours=2) + number * SECOND
        memory.hold(a_key(f"n{number}"), Part.STATUS, settle, at)
    assert len(memory) < 1100


def test_a_settle_of_zero_holds_nothing_back() -> None:
    assert Memory().hold(a_key(), Part.STATUS, timedelta(), SECOND) == timedelta()


@pytest.mark.fault("E5")
def test_a_residue_is_known_until_either_side_changes() -> None:
    memory, key = Memory(), a_key()
    memory.keep_residue(key, Part.OBJECT, b"mark")
    assert memory.is_residue(key, Part.OBJECT, lambda: b"mark")
    assert not memory.is_residue(key, Part.OBJECT, lambda: b"other")
    assert not memory.is_residue(key, Part.STATUS, lambda: b"mark")
    memory.drop_residue(key, Part.OBJECT)
    assert not memory.is_residue(key, Part.OBJECT, lambda: b"mark")


def test_what_is_gone_is_forgotten() -> None:
    memory = Memory()
    memory.hold(a_key(plane="gone"), Part.STATUS, SECOND, SECOND)
    memory.keep_residue(a_key(plane="gone"), Part.STATUS, b"x")
    memory.keep_residue(a_key(plane="kept"), Part.STATUS, b"x")
    memory.forget(lambda key: key.plane == "gone")
    assert len(memory) == 1


def test_a_selector_takes_label_values_and_nothing_that_reads_as_more() -> None:
    assert Selector.of_labels({"b": "2", "a": ""}).labels == "a=,b=2"
    for value in ("x,y=z", "a b", "x)", "-a", "a" * 64):
        with pytest.raises(InvariantError, match="not a label value"):
            Selector.of_labels({"a": value})
