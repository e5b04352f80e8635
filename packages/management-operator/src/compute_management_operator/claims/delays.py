"""How long the claims controller waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# A list of claims per project and period is all that claims without a watch cost.
SWEEP_EVERY: Final = timedelta(minutes=15)
# A cell reads a slot that another cell holds every 15 s (quota.md B5).
FIRST_READ: Final = timedelta(seconds=5)
LAST_READ: Final = timedelta(minutes=5)  # while reads show nothing to remove
