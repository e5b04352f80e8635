"""The same time for each of many."""

from __future__ import annotations

import asyncio

import pytest

from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.timeouts import Deadline

SHORT = 0.02


async def test_block_that_takes_longer_ends_with_a_timeout() -> None:
    deadline = Deadline(SHORT)
    with pytest.raises(TimeoutError), deadline.start():
        await asyncio.Event().wait()


async def test_block_in_time_is_left_alone_also_when_the_timer_rings() -> None:
    deadline = Deadline(SHORT)
    with deadline.start():
        await asyncio.sleep(0)
    await asyncio.sleep(2 * SHORT)
    current = asyncio.current_task()
    assert current is not None
    assert not current.cancelling()


async def test_later_block_has_its_own_time() -> None:
    """The timer of the first one goes on to the second."""
    deadline = Deadline(SHORT)
    loop = asyncio.get_running_loop()

    async def wait_for_ever() -> float:
        began = loop.time()
        with pytest.raises(TimeoutError), deadline.start():
            await asyncio.Event().wait()
        return loop.time() - began

    first = asyncio.create_task(wait_for_ever())
    await asyncio.sleep(SHORT / 2)
    second = asyncio.create_task(wait_for_ever())
    assert await first >= SHORT
    assert await second >= SHORT


async def test_deadline_can_be_used_again_after_it_rested() -> None:
    deadline = Deadline(SHORT)
    for _ in range(2):
        with pytest.raises(TimeoutError), deadline.start():
            await asyncio.Event().wait()


async def test_cancelling_from_outside_is_no_timeout() -> None:
    deadline = Deadline(60)

    async def run() -> None:
        with deadline.start():
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancelling_from_outside_wins_over_a_timeout_at_the_same_moment() -> None:
    deadline = Deadline(SHORT)

    async def run() -> None:
        with deadline.start():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                own = asyncio.current_task()
                assert own is not None
                own.cancel()
                raise

    task = asyncio.create_task(run())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_error_inside_goes_out_as_it_is() -> None:
    deadline = Deadline(SHORT)
    with pytest.raises(KeyError), deadline.start():
        raise KeyError("inside")


async def test_block_outside_of_a_task_is_a_bug() -> None:
    loop = asyncio.get_running_loop()
    told = loop.create_future()

    def call() -> None:
        try:
            with Deadline(SHORT).start():
                told.set_result(None)
        except InvariantError as bug:
            told.set_exception(bug)

    loop.call_soon(call)
    with pytest.raises(InvariantError):
        await told
