from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from compute_operator_kit.client.flow_control import FlowControl, Limits
from compute_operator_kit.client.rate_limit import CircuitBreaker, RetryAfterGate, TokenBucket
from compute_operator_kit.core.errors import ThrottledError, UnavailableError
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.testing.fakes import FakeClock

HUB = PlaneName("hub")


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    bucket = TokenBucket(rate=10, burst=3)
    waits = [bucket.take(seconds(1)) for _ in range(5)]
    assert waits == [seconds(0), seconds(0), seconds(0), seconds(0.1), seconds(0.2)]


def test_a_bucket_fills_up_again_and_not_beyond_its_burst() -> None:
    bucket = TokenBucket(rate=10, burst=2)
    for _ in range(4):
        bucket.take(seconds(0))
    assert bucket.take(seconds(100)) == seconds(0)
    assert bucket.take(seconds(100)) == seconds(0)
    assert bucket.take(seconds(100)) == seconds(0.1)


def test_a_breaker_opens_with_the_fifth_failure_in_a_row() -> None:
    breaker = CircuitBreaker()
    assert [breaker.fail() for _ in range(6)] == [False, False, False, False, True, False]
    assert breaker.is_open
    assert breaker.succeed()
    assert not breaker.is_open


def test_a_success_between_failures_keeps_a_breaker_closed() -> None:
    breaker = CircuitBreaker()
    for _ in range(20):
        for _ in range(4):
            breaker.fail()
        assert not breaker.succeed()
    assert not breaker.is_open


def test_the_longer_of_two_pauses_holds() -> None:
    pause = RetryAfterGate()
    pause.ask(seconds(10), seconds(0))
    pause.ask(seconds(1), seconds(1))
    assert pause.left(seconds(4)) == seconds(6)
    assert pause.left(seconds(11)) == seconds(0)


@pytest.mark.fault("C3")
async def test_nothing_is_sent_to_a_plane_that_asked_for_a_pause() -> None:
    clock = FakeClock()
    lane, other = FlowControl(HUB, clock), FlowControl(PlaneName("other"), clock)
    lane.answered(429, seconds(5))
    clock.pass_time(seconds(2))
    with pytest.raises(ThrottledError) as raised:
        await lane.admit()
    assert raised.value.retry_after == seconds(3)
    await other.admit()
    clock.pass_time(seconds(3))
    await lane.admit()


async def test_a_throttled_plane_is_up() -> None:
    lane = FlowControl(HUB, FakeClock())
    for _ in range(10):
        lane.answered(429, None)
    assert lane.is_up
    assert not lane.is_open


@pytest.mark.fault("C4")
async def test_an_open_breaker_lets_a_probe_through_and_nothing_else() -> None:
    lane = FlowControl(HUB, FakeClock())
    for _ in range(5):
        lane.answered(503, None)
    with pytest.raises(UnavailableError) as raised:
        await lane.admit()
    assert (raised.value.reason, raised.value.plane) == ("BreakerOpen", "hub")
    await lane.admit(is_probe=True)
    lane.answered(404, None)
    await lane.admit()


async def test_listeners_hear_of_every_change_and_of_nothing_else() -> None:
    lane = FlowControl(HUB, FakeClock())
    heard: list[tuple[bool, bool]] = []
    lane.listen(lambda: heard.append((lane.is_up, lane.is_open)))
    for _ in range(6):
        lane.failed()
    lane.answered(200, None)
    lane.answered(200, None)
    assert heard == [(False, False), (False, True), (True, False)]
    lane.mute()
    lane.failed()
    assert len(heard) == 3


async def test_a_request_beyond_the_burst_waits_for_its_token() -> None:
    clock = FakeClock()
    lane = FlowControl(HUB, clock, Limits(qps=1, burst=1))
    await lane.admit()
    waiting = asyncio.create_task(lane.admit())
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.pass_time(seconds(1))
    await waiting
