"""Delays of the decommission command."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

PROJECT_INTERVAL: Final = timedelta(milliseconds=200)
"""Between two projects (operations.md 8.1: at most 5 per second), to spare the quota server."""
