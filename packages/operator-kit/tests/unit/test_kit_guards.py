from __future__ import annotations

import asyncio

import orjson
import pytest

from compute_operator_kit.errors import UnavailableError
from compute_operator_kit.exchange import Connection
from compute_operator_kit.guards import Locks, find_refusal
from compute_operator_kit.intents import IfNone
from compute_operator_kit.keys import PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.testing import (
    A_KIND,
    FakeClock,
    ScriptedAnswer,
    ScriptedTransport,
    a_key,
    a_snapshot,
)

HUB = PlaneName("hub")
NONE = IfNone(HUB, A_KIND, {"of": "root"}, counts_deleting=True)


def a_page(*items: object, continue_token: str = "") -> ScriptedAnswer:
    header = {"resourceVersion": "9", "continue": continue_token}
    return ScriptedAnswer(200, orjson.dumps({"metadata": header, "items": items}))


async def ask(*script: ScriptedAnswer) -> str | None:
    connection = Connection(HUB, Role.HUB, ScriptedTransport(*script), Lane(HUB, FakeClock()))
    kube = KubeHttp(connection, Writer("x", "x"))
    return await find_refusal(NONE, lambda _: kube)


PLACE = "place-in-a-list"


async def test_none_means_none_on_any_page() -> None:
    assert await ask(a_page(continue_token=PLACE), a_page()) is None
    found = a_snapshot(a_key(plane="hub")).decode()
    refusal = await ask(a_page(continue_token=PLACE), a_page(found))
    assert refusal == "hub://Note/default/web exists"


async def test_what_cannot_be_read_may_be_one() -> None:
    assert await ask(a_page({"metadata": 7})) is not None


async def test_a_list_that_expired_says_nothing() -> None:
    with pytest.raises(UnavailableError) as raised:
        await ask(a_page(continue_token=PLACE), ScriptedAnswer(410, b""))
    assert raised.value.reason == "ListIncomplete"


async def test_a_lock_lets_one_in_and_is_forgotten_afterwards() -> None:
    locks, inside, most = Locks(), 0, 0

    async def work() -> None:
        nonlocal inside, most
        async with locks.hold(a_key()):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(10)))
    assert most == 1
    assert len(locks) == 0


async def test_locks_of_different_keys_do_not_meet() -> None:
    locks = Locks()
    async with locks.hold(a_key("one")), locks.hold(a_key("other")), locks.hold(None):
        assert len(locks) == 2
    assert len(locks) == 0


async def test_who_gives_up_waiting_leaves_no_lock_behind() -> None:
    locks = Locks()
    async with locks.hold(a_key()):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001), locks.hold(a_key()):
                raise AssertionError
    assert len(locks) == 0
