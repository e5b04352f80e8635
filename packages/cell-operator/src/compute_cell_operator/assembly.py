"""What a controller folder is built with."""

from __future__ import annotations

from dataclasses import dataclass, field

from compute_cell_operator.network.switch import Switch
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.apply.desk import NoRecorder, Recorder
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.reach import Reach


@dataclass(frozen=True, slots=True)
class Tools:
    """What a folder is built with; `reach` is what it may do with planes once they exist."""

    settings: CellSettings
    clock: Clock
    random: Random
    operator: ObjectKey  # our own Deployment at home: where events about ourselves go
    networking: Switch  # whether networking kinds count, for all folders alike
    measures: Measures = field(default_factory=NoMeasures)
    recorder: Recorder = field(default_factory=NoRecorder)  # for events of what is no pass
    reach: Reach = field(default_factory=Reach)
