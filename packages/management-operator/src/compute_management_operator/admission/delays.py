"""How long an admission review may take, and how long facts of an idle project are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# The API server waits 5 s (api.md 12.1) and discards a later answer.
ANSWER_WITHIN: Final = timedelta(seconds=4)
# Locations of a project without Workloads are not watched: a new one is known this late.
KEPT_FOR: Final = timedelta(seconds=10)
