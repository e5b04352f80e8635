"""Dependencies of the controller folders, built once by `wiring`, with shared delays and triggers.

A folder constructs no adapter of its own: a simulation replaces these and runs what ships.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from compute_management_operator.planes import DEPLOYMENT, WORKLOAD
from compute_management_operator.settings import ManagementSettings
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.controller.key_rate_limiter import KeyRateLimit
from compute_operator_kit.core.backoff import RetryPolicy
from compute_operator_kit.core.clock import Clock, Random
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics
from compute_operator_kit.planes.engaged_plane import OnDemand

RESYNC: Final = timedelta(minutes=30)  # management.md 2
# A write that a plane refuses for its content is repeated on a change or at the resync (14).
RETRY: Final = RetryPolicy(rejected=RESYNC)
# A key that changes all the time is reconciled every two seconds (runtime.md, `workqueue.py`).
# Creating a Workload takes three reconciles and its way to Available some more, all of them without
# a delay; on two planes, with a deletion and a recreation in between, twice as many.
RATE_LIMIT: Final = KeyRateLimit(
    at_once=6, first=timedelta(milliseconds=100), longest=timedelta(seconds=2)
)
HUB_RATE_LIMIT: Final = replace(RATE_LIMIT, at_once=15)
# Kinds of a project that are of no use without a Workload or a deployment in it (management.md 9).
IN_USE: Final = OnDemand(triggers=(WORKLOAD, DEPLOYMENT))


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Settings, ports and planes of a controller folder."""

    settings: ManagementSettings
    clock: Clock
    random: Random
    operator: ObjectKey  # our own Deployment: events about the operator itself are recorded on it
    metrics: MetricsPort = field(default_factory=NoMetrics)
    context: OperatorContext = field(default_factory=OperatorContext)
