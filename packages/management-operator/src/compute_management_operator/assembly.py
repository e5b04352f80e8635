"""What a controller folder is built with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from compute_management_operator.settings import ManagementSettings
from compute_operator_kit.backoff import RetryPolicy
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.pacing import Tempo
from compute_operator_kit.reach import Reach

RESYNC: Final = timedelta(minutes=30)  # management.md 2
# What a plane refuses for what it says is tried again on a change or at the resync (14).
RETRY: Final = RetryPolicy(rejected=RESYNC)
# Whatever goes on changing is looked at every two seconds, for all that happened since
# (runtime.md, `workqueue.py`). The birth of a Workload takes three passes, and to hear that it is
# Available some more; what follows from it on two planes, a deletion and a birth under the same
# name in between, twice as many.
TEMPO: Final = Tempo(at_once=6, first=timedelta(milliseconds=100), longest=timedelta(seconds=2))
LATER_TEMPO: Final = replace(TEMPO, at_once=15)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a folder is built with; `reach` is what it may do with planes once they exist."""

    settings: ManagementSettings
    clock: Clock
    random: Random
    operator: ObjectKey  # our own Deployment at home: where events about ourselves go
    measures: Measures = field(default_factory=NoMeasures)
    reach: Reach = field(default_factory=Reach)
