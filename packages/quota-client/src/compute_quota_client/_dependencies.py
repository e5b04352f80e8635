"""Randomness, wall clock and telemetry of a client, injected when it is built.

A test or a simulation replaces them, so that its runs are repeatable.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from compute_quota_client._clock import wall_now
from compute_quota_client._retry import Chance
from compute_quota_client._telemetry import NoTelemetry, Telemetry


@dataclass(frozen=True, slots=True)
class ClientDependencies:
    """Passed to a client when it is built. Durations are not here: they follow the event loop's
    clock.
    """

    chance: Chance = random.random
    wall_clock: Callable[[], datetime] = wall_now
    telemetry: Telemetry = field(default_factory=NoTelemetry)


# The public name, in `__all__`.
Surroundings: TypeAlias = ClientDependencies
