from __future__ import annotations

from datetime import timedelta

from compute_operator_kit.controller.blocked_keys import BlockedKeys
from compute_operator_kit.controller.workqueue import Priority
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.testing.fakes import A_KIND

HUB = PlaneName("karmada")
PROJECT = PlaneName("project")
LATER = timedelta(seconds=5)


def a_key(name: str, plane: PlaneName = PROJECT) -> ObjectKey:
    return ObjectKey(plane, A_KIND, "default", name)


def is_of_hub(key: ObjectKey) -> bool:
    return key.plane == HUB


def test_a_plane_that_answers_frees_those_that_waited_for_it_and_no_others() -> None:
    waiting = BlockedKeys()
    waiting.park(HUB, a_key("a"), LATER)
    waiting.park(PROJECT, a_key("b"), ZERO)
    assert waiting.take_parked(HUB) == {a_key("a"): LATER}
    assert waiting.take_parked(HUB) == {}
    assert waiting.take_parked(PROJECT) == {a_key("b"): ZERO}


def test_a_key_that_sent_no_request_waits_no_longer_than_before() -> None:
    waiting = BlockedKeys()
    waiting.park_unless_parked(HUB, a_key("a"), ZERO)
    waiting.park_unless_parked(HUB, a_key("a"), LATER)
    assert waiting.take_parked(HUB) == {a_key("a"): ZERO}
    waiting.park_unless_parked(HUB, a_key("a"), ZERO)
    waiting.park(HUB, a_key("a"), LATER)
    assert waiting.take_parked(HUB) == {a_key("a"): LATER}


def test_a_cache_that_is_complete_frees_its_own() -> None:
    waiting = BlockedKeys()
    waiting.await_cache((HUB, A_KIND), a_key("a"))
    waiting.await_cache((Role.HUB, A_KIND), a_key("b"))
    assert list(waiting.take_unsynced((Role.HUB, A_KIND))) == [a_key("b")]
    assert list(waiting.take_unsynced((HUB, A_KIND))) == [a_key("a")]


def test_a_key_is_held_once_until_it_is_released() -> None:
    waiting = BlockedKeys()
    assert waiting.hold(a_key("a"))
    assert not waiting.hold(a_key("a"))
    waiting.release(a_key("a"))
    assert waiting.hold(a_key("a"))


def test_a_disengaged_plane_drops_its_keys_and_releases_those_that_waited_for_it() -> None:
    waiting = BlockedKeys()
    waiting.park(HUB, a_key("parked"), LATER)
    waiting.park(HUB, a_key("gone", HUB), LATER)
    waiting.park(PROJECT, a_key("gone too", HUB), LATER)
    waiting.park(PROJECT, a_key("stays"), LATER)
    waiting.await_cache((HUB, A_KIND), a_key("unsynced"))
    waiting.await_cache((PROJECT, A_KIND), a_key("waits on"))
    waiting.hold(a_key("held"))
    waiting.hold(a_key("parked"))
    waiting.hold(a_key("held and gone", HUB))
    assert waiting.leave(HUB, is_of_hub) == [a_key("parked"), a_key("unsynced"), a_key("held")]
    assert waiting.take_parked(PROJECT) == {a_key("stays"): LATER}
    assert list(waiting.take_unsynced((PROJECT, A_KIND))) == [a_key("waits on")]
    assert waiting.hold(a_key("held")), "no key is held any more"


def test_a_key_that_waits_for_a_cache_keeps_its_most_urgent_priority() -> None:
    waiting = BlockedKeys()
    waiting.await_cache((PROJECT, A_KIND), a_key("a"), Priority.HIGH)
    waiting.await_cache((PROJECT, A_KIND), a_key("a"), Priority.LOW)
    waiting.await_cache((PROJECT, A_KIND), a_key("b"))
    assert waiting.take_unsynced((PROJECT, A_KIND)) == {
        a_key("a"): Priority.HIGH,
        a_key("b"): Priority.LOW,
    }
