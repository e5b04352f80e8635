from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest

from compute_management_operator.hub.delays import BINDING_FORGOTTEN_AFTER
from compute_management_operator.hub.federation.leftover_bindings import LeftoverBindings
from compute_operator_kit.cache.store import Listing
from compute_operator_kit.testing.fakes import FakeClock

PLACE: Final = "ns-1"
NAME: Final = "web-us-dfw"
MOMENT: Final = timedelta(seconds=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def leftovers(clock: FakeClock) -> LeftoverBindings:
    return LeftoverBindings(clock)


def listed(clock: FakeClock) -> Listing:
    return Listing(number=1, at=clock.monotonic(), held_before=0, vanished=0)


def test_nothing_is_ruled_out_before_copies_were_listed(leftovers: LeftoverBindings) -> None:
    leftovers.note_made(PLACE)
    assert leftovers.may_be(PLACE, NAME, None)


def test_what_went_before_the_list_may_have_left_a_binding_for_a_while(
    clock: FakeClock, leftovers: LeftoverBindings
) -> None:
    listing = listed(clock)
    assert leftovers.may_be(PLACE, NAME, listing)
    clock.pass_time(BINDING_FORGOTTEN_AFTER - MOMENT)
    assert leftovers.may_be(PLACE, NAME, listing)
    clock.pass_time(MOMENT)
    assert not leftovers.may_be(PLACE, NAME, listing)


def test_a_hub_namespace_that_we_made_had_nothing_to_leave(
    clock: FakeClock, leftovers: LeftoverBindings
) -> None:
    listing = listed(clock)
    clock.pass_time(MOMENT)
    leftovers.note_made(PLACE)
    assert not leftovers.may_be(PLACE, NAME, listing)
    assert leftovers.may_be("ns-2", NAME, listing)


def test_a_list_after_the_namespace_was_made_may_have_missed_a_copy(
    clock: FakeClock, leftovers: LeftoverBindings
) -> None:
    leftovers.note_made(PLACE)
    clock.pass_time(MOMENT)
    assert leftovers.may_be(PLACE, NAME, listed(clock))


def test_a_copy_that_went_in_our_sight_may_have_left_a_binding_for_a_while(
    clock: FakeClock, leftovers: LeftoverBindings
) -> None:
    listing = listed(clock)
    leftovers.note_made(PLACE)
    leftovers.note_gone(PLACE, NAME)
    assert leftovers.may_be(PLACE, NAME, listing)
    assert not leftovers.may_be(PLACE, "other", listing)
    clock.pass_time(BINDING_FORGOTTEN_AFTER - MOMENT)
    leftovers.note_gone(PLACE, NAME)  # once more, which counts anew
    clock.pass_time(BINDING_FORGOTTEN_AFTER)
    assert leftovers.may_be(PLACE, NAME, listing)
    clock.pass_time(MOMENT)
    assert not leftovers.may_be(PLACE, NAME, listing)


def test_nothing_is_remembered_for_longer_on_a_follower_either(
    clock: FakeClock, leftovers: LeftoverBindings
) -> None:
    for number in range(3):
        leftovers.note_gone(PLACE, f"web-{number}")
    clock.pass_time(BINDING_FORGOTTEN_AFTER + MOMENT)
    leftovers.note_gone(PLACE, NAME)
    assert len(leftovers) == 1
