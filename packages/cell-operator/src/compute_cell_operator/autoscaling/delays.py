"""Delays of the autoscaling controller, each with its reason (autoscaling.md 3, 4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

RETRY_TAKEN: Final = timedelta(minutes=5)
"""A foreign autoscaler of the name is in no cache, so its deletion may enqueue nothing."""

RETRY_UNSERVED: Final = timedelta(seconds=30)
"""The kind comes with the API server; one that does not serve it is being started or repaired."""

HOLD_LIMITED: Final = timedelta(seconds=30)
"""`AutoscalingLimited` may turn with every evaluation, each 15 s, and no one acts within one."""
