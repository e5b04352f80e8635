"""Cells whose Cluster does not exist any more, although Instances name them. Pure
(dark-sites.md 7).

Karmada removes the Cluster of a cell that is decommissioned before its copies on the hub are
removed; until then nothing can be heard of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

ABSENT_FOR: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Absences:
    """Since when each Cluster is absent, and which are absent for long enough."""

    since: Mapping[str, timedelta] = field(default_factory=dict[str, timedelta])
    gone: frozenset[str] = frozenset()


def note_absent(before: Absences, absent: AbstractSet[str], now: timedelta) -> Absences:
    since = {cell: before.since.get(cell, now) for cell in absent}
    gone = frozenset(cell for cell, at in since.items() if now - at >= ABSENT_FOR)
    return Absences(since, gone)
