from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from compute_sim_planes.time.clock import LoopReport, SkewedClock, UnhandledError, VirtualClock, run
from compute_sim_planes.time.virtual_loop import (
    DeadlockError,
    LivelockError,
    VirtualLoop,
    VirtualTimeError,
)

START = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
SEEDS = range(8)
SECOND = timedelta(seconds=1)


async def run_workers(clock: VirtualClock) -> str:
    """Workers that trigger each other, wait and draw: returns their order."""
    order: list[str] = []
    queue = asyncio.Queue[int]()

    async def work(name: str) -> None:
        for turn in range(3):
            await clock.sleep(timedelta(seconds=clock.random("jitter").choice([0, 1, 1])))
            queue.put_nowait(turn)
            order.append(f"{clock.monotonic().total_seconds():g}:{name}{turn}")

    async with asyncio.TaskGroup() as group:
        for name in "abcd":
            group.create_task(work(name))
        for _ in range(12):
            await queue.get()
    return f"{' '.join(order)} {clock.uid()}"


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    first = [run(run_workers, seed=seed, start=START) for seed in SEEDS]
    second = [run(run_workers, seed=seed, start=START) for seed in SEEDS]

    assert first == second
    assert len(set(first)) == len(SEEDS)


def test_what_is_ready_at_the_same_moment_runs_in_an_order_of_the_seed() -> None:
    async def main(clock: VirtualClock) -> str:
        order: list[str] = []

        async def work(name: str) -> None:
            await clock.sleep(SECOND)
            order.append(name)

        await asyncio.gather(*(work(name) for name in "abcdef"))
        return "".join(order)

    orders = {run(main, seed=seed, start=START) for seed in SEEDS}

    assert len(orders) > len(SEEDS) // 2
    assert {"".join(sorted(order)) for order in orders} == {"abcdef"}


HISTORY_SCRIPT = """
import asyncio
from datetime import UTC, datetime, timedelta
from compute_sim_planes.time.clock import run

async def main(clock):
    told = []
    async def work(name):
        try:
            await clock.sleep(timedelta(seconds=1))
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append(name)
            raise
    async def fail():
        await clock.sleep(timedelta(seconds=2))
        raise ValueError
    try:
        async with asyncio.TaskGroup() as group:
            for name in "abcdefgh":
                group.create_task(work(name))
            group.create_task(fail())
    except* ValueError:
        pass
    return "".join(told)

print(run(main, seed=7, start=datetime(2026, 1, 1, tzinfo=UTC)))
"""


def test_the_same_seed_gives_the_same_order_in_another_process_too() -> None:
    """A task group cancels its tasks in the order of a set, which must not depend on addresses."""
    orders = {
        subprocess.run(
            [sys.executable, "-c", f"junk = [object() for _ in range({size})]\n{HISTORY_SCRIPT}"],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for size, hash_seed in [(0, "1"), (1000, "2"), (77777, "3")]
    }

    assert len(orders) == 1
    assert sorted(orders.pop().strip()) == list("abcdefgh")


def test_time_jumps_to_the_next_timer_and_an_hour_takes_no_time() -> None:
    async def main(clock: VirtualClock) -> list[datetime]:
        moments = [clock.now()]
        await clock.sleep(timedelta(hours=1))
        moments.append(clock.now())
        async with asyncio.timeout(600):
            await asyncio.sleep(0.5)
        moments.append(clock.now())
        return moments

    assert run(main, seed=1, start=START) == [
        START,
        START + timedelta(hours=1),
        START + timedelta(hours=1, milliseconds=500),
    ]


def test_moments_that_are_the_same_are_the_same_however_they_were_reached() -> None:
    async def main(clock: VirtualClock) -> set[float]:
        moments: set[float] = set()

        async def in_steps(steps: int) -> None:
            for _ in range(steps):
                await clock.sleep(timedelta(seconds=0.3) / steps)
            moments.add(asyncio.get_running_loop().time())

        await asyncio.gather(in_steps(1), in_steps(3))
        return moments

    assert run(main, seed=1, start=START) == {0.3}


def test_timeouts_fire_in_virtual_time() -> None:
    async def main(clock: VirtualClock) -> timedelta:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return clock.monotonic()

    assert run(main, seed=1, start=START) == timedelta(seconds=30)


def test_a_cancelled_timer_does_not_move_time() -> None:
    loop = VirtualLoop(Random(1))  # noqa: S311 -- an order, no secret
    waiting = loop.create_task(asyncio.Event().wait(), name="waiter")
    loop.call_later(10, lambda: None).cancel()
    with pytest.raises(DeadlockError):
        loop.run_until_complete(waiting)
    assert loop.time() == 0
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(waiting)
    loop.close()


def test_a_deadlock_names_the_waiting_tasks_and_lines() -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    async def main(clock: VirtualClock) -> None:
        del clock
        async with asyncio.TaskGroup() as group:
            group.create_task(wait_for_ever(), name="reflector")

    with pytest.raises(DeadlockError, match=r"(?s)main at .*reflector at locks\.py:\d+ in Event"):
        run(main, seed=1, start=START)


def test_a_spinning_loop_is_distinguished_from_a_working_one() -> None:
    async def spin() -> None:
        for _ in itertools.count():
            await asyncio.sleep(0)

    loop = VirtualLoop(Random(1), spin_limit=1000)  # noqa: S311 -- an order, no secret
    spinning = loop.create_task(spin(), name="spinner")
    with pytest.raises(LivelockError, match="spinner at"):
        loop.run_until_complete(spinning)
    spinning.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(spinning)
    loop.close()


def test_what_main_leaves_is_cancelled_and_reported() -> None:
    ended: list[str] = []

    async def linger(clock: VirtualClock) -> None:
        try:
            await clock.sleep(timedelta(days=1))
        finally:
            ended.append("lingerer")

    async def main(clock: VirtualClock) -> str:
        lingering = asyncio.create_task(linger(clock), name="lingerer")
        await clock.sleep(timedelta(seconds=1))
        assert not lingering.done()
        return "done"

    report = LoopReport()

    assert run(main, seed=1, start=START, report=report) == "done"
    assert ended == ["lingerer"]
    assert [text.partition(" ")[0] for text in report.pending] == ["lingerer"]


def test_an_unhandled_exception_is_not_lost() -> None:
    async def main(clock: VirtualClock) -> None:
        def fail() -> None:
            raise ValueError("nobody expects this")

        asyncio.get_running_loop().call_soon(fail)
        await clock.sleep(timedelta(seconds=1))

    report = LoopReport()
    run(main, seed=1, start=START, report=report)

    assert report.unhandled == ["exception in a callback: ValueError('nobody expects this')"]
    with pytest.raises(UnhandledError, match="nobody expects this"):
        run(main, seed=1, start=START)


def test_what_main_raises_comes_out() -> None:
    async def main(clock: VirtualClock) -> None:
        await clock.sleep(timedelta(seconds=1))
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run(main, seed=1, start=START)


def test_async_generators_are_closed_at_the_end() -> None:
    closed: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("numbers")

    async def main(clock: VirtualClock) -> int:
        del clock
        held.append(numbers())
        return await anext(held[0])

    held: list[AsyncIterator[int]] = []

    assert run(main, seed=1, start=START) == 1
    assert closed == ["numbers"]


def test_threads_are_refused_by_name() -> None:
    def work() -> None: ...

    async def main(clock: VirtualClock) -> None:
        del clock
        await asyncio.to_thread(work)

    with pytest.raises(VirtualTimeError, match="in a thread under virtual time"):
        run(main, seed=1, start=START)


def test_another_thread_cannot_call_in() -> None:
    caught: list[str] = []

    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()

        def call_in() -> None:
            try:
                loop.call_soon_threadsafe(lambda: None)
            except VirtualTimeError as refusal:
                caught.append(str(refusal))

        thread = threading.Thread(target=call_in)
        thread.start()
        thread.join()
        await clock.sleep(timedelta(seconds=1))

    run(main, seed=1, start=START)

    assert caught == ["another thread called into a loop with virtual time"]


def test_streams_of_randomness_do_not_disturb_each_other() -> None:
    async def draw(clock: VirtualClock, jitters: int) -> str:
        for _ in range(jitters):
            clock.random("jitter").random()
        return clock.uid()

    few = run(lambda clock: draw(clock, 1), seed=3, start=START)
    many = run(lambda clock: draw(clock, 9), seed=3, start=START)

    assert few == many


@pytest.mark.fault("E1")
def test_a_skewed_clock_is_wrong_about_the_day_and_right_about_durations() -> None:
    async def main(clock: VirtualClock) -> None:
        skewed = SkewedClock(clock, timedelta(minutes=10))
        assert skewed.now() - clock.now() == timedelta(minutes=10)
        skewed.step(timedelta(hours=-1))
        assert skewed.now() - clock.now() == timedelta(minutes=-50)
        skewed.slew(1.5)
        before = skewed.monotonic()
        await skewed.sleep(timedelta(seconds=100))
        assert skewed.now() - clock.now() == timedelta(minutes=-50, seconds=50)
        assert skewed.monotonic() - before == timedelta(seconds=100)
        skewed.slew(1.0)
        assert skewed.now() - clock.now() == timedelta(minutes=-50, seconds=50)

    run(main, seed=1, start=START)
