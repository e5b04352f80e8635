from __future__ import annotations

import asyncio
from datetime import timedelta

import orjson
import pytest
from msgspec.structs import replace

from compute_operator_kit.apply.guards import VALID_FOR, Locks, find_refusal
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.keys import PlaneName, Role
from compute_operator_kit.intents.intents import Guard, RequireExists, RequireNone
from compute_operator_kit.testing.fakes import (
    A_KIND,
    FakeClock,
    ScriptedResponse,
    ScriptedTransport,
    a_key,
    a_snapshot,
)

HUB = PlaneName("hub")
NONE = RequireNone(HUB, A_KIND, {"of": "root"}, counts_deleting=True)


def a_page(*items: object, continue_token: str = "") -> ScriptedResponse:
    header = {"resourceVersion": "9", "continue": continue_token}
    return ScriptedResponse(200, orjson.dumps({"metadata": header, "items": items}))


async def ask(*script: ScriptedResponse) -> str | None:
    connection = RestConfig(
        HUB, Role.HUB, ScriptedTransport(*script), FlowControl(HUB, FakeClock())
    )
    kube = HttpKubeClient(connection, FieldOwner("x", "x"))
    return await find_refusal(NONE, lambda _: kube)


PLACE = "place-in-a-list"


async def test_none_means_none_on_any_page() -> None:
    assert await ask(a_page(continue_token=PLACE), a_page()) is None
    body = a_snapshot(a_key(plane="hub")).decode()
    refusal = await ask(a_page(continue_token=PLACE), a_page(body))
    assert refusal == "hub://Note/default/web exists"


async def test_what_cannot_be_read_may_be_one() -> None:
    assert await ask(a_page({"metadata": 7})) is not None


async def test_a_list_that_expired_says_nothing() -> None:
    with pytest.raises(UnavailableError) as raised:
        await ask(a_page(continue_token=PLACE), ScriptedResponse(410, b""))
    assert raised.value.reason == "ListIncomplete"


# --- locks ----------------------------------------------------------------------------------------


async def test_a_lock_lets_one_in_and_is_forgotten_afterwards() -> None:
    locks, inside, most = Locks(), 0, 0

    async def work() -> None:
        nonlocal inside, most
        await locks.take(a_key())
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        locks.release(a_key())

    await asyncio.gather(*(work() for _ in range(10)))
    assert most == 1
    assert len(locks) == 0


async def test_locks_of_different_keys_do_not_meet() -> None:
    locks = Locks()
    await locks.take(a_key("one"))
    await locks.take(a_key("other"))
    assert len(locks) == 2
    locks.release(a_key("one"))
    locks.release(a_key("other"))
    assert len(locks) == 0


async def test_a_cancelled_waiter_leaves_no_lock() -> None:
    locks = Locks()
    await locks.take(a_key())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await locks.take(a_key())
    locks.release(a_key())
    assert len(locks) == 0


# --- what is handed on with a lock ----------------------------------------------------------------

PARENT = a_key("parent")
UNDER = RequireExists(PARENT, lock=PARENT)
START = timedelta(seconds=100)


def test_what_was_found_alive_is_handed_on_for_a_moment() -> None:
    locks = Locks()
    assert not locks.is_known_alive(UNDER, START)
    locks.record(UNDER, START, is_refused=False)
    assert locks.is_known_alive(UNDER, START)
    assert not locks.is_known_alive(UNDER, START + VALID_FOR)
    assert not locks.is_known_alive(RequireExists(a_key("other"), lock=PARENT), START)
    assert not locks.is_known_alive(RequireExists(PARENT), START)


@pytest.mark.parametrize(
    ("guard", "is_refused"),
    [
        pytest.param(replace(NONE, lock=PARENT), False, id="who may delete it now"),
        pytest.param(replace(NONE, lock=PARENT), True, id="who may not delete it yet"),
        pytest.param(UNDER, True, id="read as gone"),
    ],
)
def test_a_lock_is_handed_on_with_no_answer_older_than(guard: Guard, *, is_refused: bool) -> None:
    locks = Locks()
    locks.record(UNDER, START, is_refused=False)
    locks.record(guard, START, is_refused=is_refused)
    assert not locks.is_known_alive(UNDER, START)


def test_what_was_found_alive_is_read_again_after_five_seconds() -> None:
    """`VALID_FOR` itself: a parent that other processes deleted gets children for no longer."""
    locks = Locks()
    locks.record(UNDER, START, is_refused=False)
    assert locks.is_known_alive(UNDER, START + timedelta(seconds=4.9))
    assert not locks.is_known_alive(UNDER, START + timedelta(seconds=5))


async def test_an_answer_outlives_its_lock_and_not_for_long() -> None:
    locks = Locks()
    await locks.take(PARENT)
    locks.record(UNDER, START, is_refused=False)
    locks.release(PARENT)
    assert locks.is_known_alive(UNDER, START)
    # Old reads of parents are dropped.
    later, other = START + VALID_FOR, a_key("other")
    locks.record(RequireExists(other, lock=other), later, is_refused=False)
    assert not locks.is_known_alive(UNDER, START)
