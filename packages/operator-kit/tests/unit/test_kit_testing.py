from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from compute_operator_kit.core.errors import PlaneGoneError
from compute_operator_kit.core.keys import PlaneName, Role
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.testing.fakes import (
    A_KIND,
    START,
    FakeCaches,
    FakeClock,
    FakeMetrics,
    FixedRandom,
    ScriptedTransport,
    a_key,
    a_snapshot,
    a_store,
)

SECOND = timedelta(seconds=1)


async def test_fake_time_passes_when_a_test_moves_it() -> None:
    clock = FakeClock()
    woken: list[str] = []

    async def sleep(name: str, length: timedelta) -> None:
        await clock.sleep(length)
        woken.append(name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sleep("late", 2 * SECOND))
        tasks.create_task(sleep("early", SECOND))
        tasks.create_task(sleep("at once", timedelta()))
        await asyncio.sleep(0.001)
        assert woken == ["at once"]
        clock.pass_time(SECOND)
        await asyncio.sleep(0.001)
        assert woken == ["at once", "early"]
        clock.pass_time(SECOND)
    assert woken == ["at once", "early", "late"]
    assert (clock.monotonic(), clock.now()) == (2 * SECOND, START + 2 * SECOND)


async def test_a_sleeper_that_gave_up_is_not_woken() -> None:
    clock = FakeClock()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await clock.sleep(SECOND)
    clock.pass_time(SECOND)


def test_the_wall_clock_may_step_back_while_time_goes_on() -> None:
    clock = FakeClock()
    clock.pass_time(SECOND)
    clock.step = -timedelta(hours=1)
    assert clock.now() < START
    assert clock.monotonic() == SECOND


def test_chances_repeat() -> None:
    random = FixedRandom(0.1, 0.9)
    assert [random.random() for _ in range(3)] == [0.1, 0.9, 0.1]
    assert FixedRandom().random() == 0.0


def test_measures_are_summed_over_series() -> None:
    measures = FakeMetrics()
    measures.count("writes", plane="hub", verb="create")
    measures.count("writes", 2, plane="hub", verb="delete")
    measures.observe("seconds", 0.5, controller="mirror")
    assert measures.total("writes", plane="hub") == 3
    assert measures.total("writes", verb="delete") == 2
    assert measures.total("reads") == 0
    assert list(measures.values.values()) == [[0.5]]


def test_caches_hold_what_they_are_given_and_nothing_of_planes_they_do_not_know() -> None:
    store = a_store(PlaneName("hub"), A_KIND, [a_snapshot(a_key(plane="hub"))])
    caches = FakeCaches([store], {"hub": Role.HUB, "project-a": Role.PROJECT})
    assert caches.lister(PlaneName("hub"), A_KIND) is store
    empty = caches.lister(PlaneName("project-a"), A_KIND)
    assert empty.snapshots() == Unreadable("NotSynced")
    assert caches.planes(Role.PROJECT) == ("project-a",)
    with pytest.raises(PlaneGoneError):
        caches.lister(PlaneName("gone"), A_KIND)


def test_a_store_may_be_incomplete() -> None:
    store = a_store(PlaneName("hub"), A_KIND, is_synced=False)
    assert store.snapshots() == Unreadable("NotSynced")


async def test_a_script_that_has_ended_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="no answer left"):
        await ScriptedTransport().request("GET", "/", {}, None)
