"""The machine's clock: the one module that calls `time.*` and `datetime.now`.

Apart from `clock.py`, so that decisions can name a `Clock` without knowing any.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from compute_operator_kit.clock import ZERO


class SystemClock:
    """What time it is here."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> timedelta:
        # Asked several times by every pass and request; whole numbers take half as long.
        return timedelta(0, 0, time.monotonic_ns() // 1000)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(max(delay, ZERO).total_seconds())
