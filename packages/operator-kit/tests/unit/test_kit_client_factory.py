"""The way home that no breaker closes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.core.errors import ThrottledError, UnavailableError
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.planes.client_factory import FlowControlWithoutBreaker
from compute_operator_kit.testing.fakes import FakeClock

HOME = PlaneName("@home")


async def test_the_lease_is_asked_for_although_home_did_not_answer() -> None:
    clock = FakeClock()
    patient, other = FlowControlWithoutBreaker(HOME, clock), FlowControl(HOME, clock)
    for lane in (patient, other):
        for _ in range(5):
            lane.failed()
        assert lane.is_open
    with pytest.raises(UnavailableError):
        await other.admit()
    await patient.admit()


async def test_a_pause_the_server_asked_for_holds_for_everybody() -> None:
    patient = FlowControlWithoutBreaker(HOME, FakeClock())
    patient.answered(429, timedelta(seconds=3))
    with pytest.raises(ThrottledError):
        await patient.admit()
