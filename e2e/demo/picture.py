"""Tables and progress bars as lines of text that fit a width. Pure.

ASCII only, without colours and cursor movements, so that every terminal shows them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

NARROWEST: Final = 24
# Below this width the long headings leave no room for a reason.
ROOMY: Final = 60
CUT: Final = "~"
LONG: Final = ("city", "desired", "ready", "up-to-date", "reason")
SHORT: Final = ("city", "want", "rdy", "new", "reason")
INDENT: Final = "  "
WIDEST_BAR: Final = 30


@dataclass(frozen=True, slots=True)
class CityRow:
    """The state of a Workload in one city."""

    city: str
    desired: int
    ready: int
    updated: int
    reason: str
    is_ready: bool

    @property
    def is_settled(self) -> bool:
        return self.is_ready and self.desired == self.ready == self.updated


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a wait."""

    done: int
    total: int
    what: str
    elapsed: timedelta


def fit(line: str, width: int) -> str:
    """The line, truncated with a mark if it is too long."""
    return line if len(line) <= width else line[: max(width - len(CUT), 0)] + CUT


def render_table(rows: Sequence[CityRow], width: int) -> list[str]:
    """A heading and a line per city."""
    width = max(width, NARROWEST)
    heads = LONG if width >= ROOMY else SHORT
    gap = INDENT if width >= ROOMY else " "
    indent = INDENT if width >= ROOMY else ""
    cells = [
        (row.city, str(row.desired), str(row.ready), str(row.updated), row.reason or "-")
        for row in rows
    ]
    widths = [max(len(line[at]) for line in (heads, *cells)) for at in range(4)]
    return [fit(indent + gap.join(_aligned(line, widths)), width) for line in (heads, *cells)]


def _aligned(line: tuple[str, ...], widths: Sequence[int]) -> list[str]:
    """Words to the left, numbers to the right, the reason unpadded."""
    city, *numbers, reason = line
    padded = [number.rjust(wide) for number, wide in zip(numbers, widths[1:], strict=True)]
    return [city.ljust(widths[0]), *padded, reason]


def render_bar(progress: Progress, width: int) -> str:
    """`[####----] 3/6  4 s  what is waited for`, with a bar as long as the width allows."""
    width = max(width, NARROWEST)
    total = max(progress.total, 1)
    done = min(max(progress.done, 0), total)
    length = min(WIDEST_BAR, width // 3)
    filled = length * done // total
    bar = "#" * filled + "-" * (length - filled)
    line = f"[{bar}] {done}/{total}  {progress.elapsed.total_seconds():.0f} s  {progress.what}"
    return fit(line, width)


def render_text(text: str, width: int, indent: str = INDENT) -> list[str]:
    """A wrapped paragraph; words longer than a line stay whole, so that they can be copied."""
    return textwrap.wrap(
        text,
        max(width, NARROWEST),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
