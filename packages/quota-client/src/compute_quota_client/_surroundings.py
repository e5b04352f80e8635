"""What a client takes from the process around it and a test puts in its place: chance, wall time,
telemetry.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from compute_quota_client._clock import wall_now
from compute_quota_client._retry import Chance
from compute_quota_client._telemetry import NoTelemetry, Telemetry


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Given to a client when it is built. Durations are not here: they follow the event loop's own
    clock.
    """

    chance: Chance = random.random
    wall_clock: Callable[[], datetime] = wall_now
    telemetry: Telemetry = field(default_factory=NoTelemetry)
