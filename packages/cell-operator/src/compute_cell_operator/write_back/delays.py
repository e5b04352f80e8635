"""Delays of write-back."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

RETRY_OWNER: Final = timedelta(seconds=30)
"""Requeue while the hub has no deployment to own a copy: Karmada may still be creating it."""
RETRY_OWNER_LATER: Final = timedelta(minutes=5)
"""The same after `OWNER_TRIES` misses in a row: the deployment is probably gone for good."""
OWNER_TRIES: Final = 10

RETRY_REFUSED: Final = timedelta(minutes=5)
"""Requeue of a refused copy: the fields it depends on are on the hub, where no watch shows them."""

RETRY_REPLACED: Final = timedelta(seconds=1)
"""Requeue after the delete of a copy without our label, which no watch shows."""

GATHER: Final = timedelta(milliseconds=100)
"""How long an update may be deferred: grant, gate and start follow each other closely, and are to
be one write.
"""

HUB_READ_VALID: Final = timedelta(seconds=10)
"""How long a live read of the hub serves updates (cell.md 11)."""

DELAYED_AFTER: Final = timedelta(minutes=5)
"""Age of the oldest waiting change that is reported as an event (cell.md 11)."""

CHECK_PERIOD: Final = timedelta(seconds=5)
"""Period of the leader's loop, which starts sweeps and reports delays."""

SWEEP_JITTER: Final = 0.1
"""± 10 % (cell.md 12), so that cells that started together do not sweep together."""
