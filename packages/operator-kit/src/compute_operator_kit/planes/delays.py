"""Delays of kinds on demand: how long one stays open, and how long keys wait for its first list."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# A tenant that deletes a Workload and creates another must not cause new lists each time.
CLOSE_AFTER: Final = timedelta(minutes=10)
# Keys that do not depend on a kind wait this long for its first list: a plane that hangs must not
# hold back updates, status and finalizers.
FIRST_LIST_WITHIN: Final = timedelta(seconds=5)
