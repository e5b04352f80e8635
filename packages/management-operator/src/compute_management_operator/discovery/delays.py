"""How long discovery waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# One engagement may take so long (management.md 9); then it counts as failing, and is still tried.
ENGAGE_LATE_AFTER: Final = timedelta(seconds=30)
