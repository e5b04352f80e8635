"""Delays that several controllers of the cell share; a folder's own are in its `delays.py`."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

RESYNC: Final = timedelta(minutes=10)
"""Period in which every key is enqueued again (cell.md 2), should an event have been lost."""

RETRY_UNREADABLE: Final = timedelta(seconds=30)
"""Requeue while a cache or plane cannot be read. A safety net: the cache or plane that becomes
readable enqueues the key.
"""
# A user who has to act sees why within 5 s, also after a start with an empty cache.
RETRY_UNREAD_DATA: Final = timedelta(seconds=2)
