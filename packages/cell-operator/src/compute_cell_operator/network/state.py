"""Whether networking counts in this cell, as plans read it; the setting is the kit's
`OptionalKindsMode`.
"""

from __future__ import annotations

from enum import StrEnum


class NetworkingState(StrEnum):
    """Without networking no gate is set and no location is needed."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"  # mode `auto`, and not every kind is listed yet
