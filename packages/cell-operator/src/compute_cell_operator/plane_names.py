"""What the planes of this operator are called in keys, logs and spans.

A project plane, should one ever be engaged here, bears the bare name of its project, a DNS label.
The planes that exist once are named so that no project can be called like them.
"""

from __future__ import annotations

from typing import Final

from compute_operator_kit.keys import PlaneName

CELL: Final = PlaneName("@cell")  # home: where deployments arrive and Instances live
HUB: Final = PlaneName("@hub")
