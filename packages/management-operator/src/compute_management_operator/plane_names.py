"""What the planes of this operator are called in keys, logs and spans.

A project plane bears the bare name of its project, which is a DNS label. The planes that exist once
are named so that no project can be called like them: whoever creates a project `hub` gets a plane
of that name and nothing else.
"""

from __future__ import annotations

from typing import Final

from compute_operator_kit.keys import PlaneName

HOME: Final = PlaneName("@home")
ROOT: Final = PlaneName("@root")
HUB: Final = PlaneName("@hub")
SINGLE: Final = PlaneName("single")  # the one project of mode `single` (management.md 1.2)
