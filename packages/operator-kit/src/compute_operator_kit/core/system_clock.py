"""The system clock: the only module that calls `time.*` and `datetime.now`.

Separate from `clock.py`, so that pure modules can use a `Clock` without importing `time`.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from compute_operator_kit.core.clock import ZERO


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> timedelta:
        # Called several times per reconcile and request; integers take half as long as floats.
        return timedelta(0, 0, time.monotonic_ns() // 1000)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(max(delay, ZERO).total_seconds())
