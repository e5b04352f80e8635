import asyncio
from datetime import timedelta

import httpx
import pytest

from compute_quota_client import (
    ClaimTracker,
    Operation,
    Outcome,
    QuotaUnavailableError,
    Surroundings,
    Telemetry,
)
from compute_quota_client.testing import Failure, FakeQuota, a_claim


class Heard:
    """A hook that records its calls."""

    def __init__(self) -> None:
        self.requests: list[tuple[Operation, Outcome]] = []
        self.took: list[timedelta] = []
        self.circuits: list[bool] = []
        self.watches: list[int] = []

    def request_ended(self, operation: Operation, outcome: Outcome, took: timedelta) -> None:
        self.requests.append((operation, outcome))
        self.took.append(took)

    def circuit_moved(self, *, is_open: bool) -> None:
        self.circuits.append(is_open)

    def watches_running(self, count: int) -> None:
        self.watches.append(count)


async def test_every_request_is_reported_with_its_outcome(fake: FakeQuota) -> None:
    heard = Heard()
    hook: Telemetry = heard
    fake.fail_next(Operation.GET, Failure(429, retry_after=1), httpx.ReadError)
    fake.knobs.latency = timedelta(milliseconds=30)
    async with fake.client(surroundings=Surroundings(telemetry=hook)) as quota:
        await quota.project("acme").claim(a_claim())
    assert heard.requests == [
        (Operation.GET, Outcome.THROTTLED),
        (Operation.GET, Outcome.FAILED),
        (Operation.GET, Outcome.ANSWERED),
        (Operation.CREATE, Outcome.ANSWERED),
    ]
    assert all(timedelta(0) < took < timedelta(milliseconds=60) for took in heard.took)


async def test_a_cancelled_request_is_reported_as_given_up(fake: FakeQuota) -> None:
    heard = Heard()
    fake.knobs.latency = timedelta(seconds=1)
    async with fake.client(surroundings=Surroundings(telemetry=heard)) as quota:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(quota.project("acme").read("default", "x"), timeout=0.1)
    assert heard.requests == [(Operation.GET, Outcome.GIVEN_UP)]


async def test_circuits_and_watches_are_reported(fake: FakeQuota) -> None:
    heard = Heard()
    async with fake.client(surroundings=Surroundings(telemetry=heard)) as quota:
        project = quota.project("acme")
        fake.knobs.away.add("acme")
        for _ in range(3):
            with pytest.raises(QuotaUnavailableError):
                await project.read("default", "x")
        fake.knobs.away.clear()
        await asyncio.sleep(2)
        await project.read("default", "x")
        assert heard.circuits == [True, False]
        ClaimTracker(project, "").follow(lambda _: None)
        await asyncio.sleep(0.1)
    assert heard.watches == [1, 0]
