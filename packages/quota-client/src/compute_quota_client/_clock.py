"""How late it is on the running event loop.

All waiting and all limits of this library follow the loop's clock (`loop.time`, `asyncio.sleep`,
`asyncio.timeout`), so whoever runs it on a loop with virtual time has all of it in virtual time.
Wall time is needed in two places only, dates in headers and ends of credentials, and is an argument
there.
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
