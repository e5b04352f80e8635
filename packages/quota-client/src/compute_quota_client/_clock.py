"""The clocks of the library: the running event loop's, and wall time.

All waits and limits follow the loop's clock (`loop.time`, `asyncio.sleep`, `asyncio.timeout`), so
that a test on a loop with virtual time waits for nothing. Wall time is needed in two places only,
dates in headers and ends of credentials, and is an argument there.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


def loop_now() -> timedelta:
    """A reading of the loop's monotonic clock."""
    return timedelta(seconds=asyncio.get_running_loop().time())


def wall_now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)
