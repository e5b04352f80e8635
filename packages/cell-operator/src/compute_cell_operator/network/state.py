"""Whether networking counts: the setting, and what it amounts to now. Pure values."""

from __future__ import annotations

from enum import StrEnum


class Networking(StrEnum):
    """The setting."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class State(StrEnum):
    """What holds now."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"  # `auto`, and the cell has not said yet
