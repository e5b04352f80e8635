"""Text that fits a terminal: cleaned of control characters, wrapped by visible width.

Messages come from tenants and cells. A terminal carries out escape sequences, and a bidirectional
override shows a text in another order than it has: both become inert here, in the one place through
which every line goes.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from compute_api_types.conditions import derive_message

NARROWEST: Final = 20
GAP: Final = "   "
_DAY: Final = timedelta(days=1)


def clean(text: str) -> str:
    """One line of visible characters: controls become spaces, format characters go."""
    return " ".join(derive_message(text).split())


def width_of(text: str) -> int:
    """How many columns a text takes; East Asian wide characters take two, marks none."""
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """The cleaned text in lines of at most `width` columns; a word that is too long is broken."""
    room = max(width - width_of(indent), NARROWEST)
    lines: list[str] = []
    line = ""
    for word in clean(text).split(" "):
        for piece in _pieces(word, room):
            joined = f"{line} {piece}" if line else piece
            if line and width_of(joined) > room:
                lines.append(line)
                line = piece
            else:
                line = joined
    return [indent + one for one in [*lines, *([line] if line else [])]]


def _pieces(word: str, room: int) -> Iterator[str]:
    piece, columns = "", 0
    for char in word:
        if columns + _columns(char) > room:
            yield piece
            piece, columns = "", 0
        piece += char
        columns += _columns(char)
    if piece:
        yield piece


def join_fitting(parts: Iterable[str], width: int, indent: str = "") -> list[str]:
    """The parts on one line where it fits, else on as many lines as they need."""
    lines: list[str] = []
    line = ""
    for part in (clean(one) for one in parts if one):
        joined = f"{line}{GAP}{part}" if line else part
        if line and width_of(indent if lines else "") + width_of(joined) > width:
            lines.append(line)
            line = part
        else:
            line = joined
    rows = [*lines, *([line] if line else [])]
    fitted: list[str] = []
    for place, row in enumerate(rows):
        fitted += wrap_keeping(row, width, indent if place else "")
    return fitted


def wrap_keeping(text: str, width: int, indent: str = "") -> list[str]:
    """A line with its inner gaps where it fits, else wrapped."""
    if width_of(indent) + width_of(text) <= width:
        return [indent + text]
    return wrap(text, width, indent)


def table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Columns aligned where every row fits the width, else each row as wrapped parts."""
    cleaned = [[clean(one) for one in row] for row in rows]
    columns = max((len(row) for row in cleaned), default=0)
    widths = [max((width_of(row[n]) for row in cleaned if n < len(row)), default=0)
              for n in range(columns)]  # fmt: skip
    if sum(widths) + len(GAP) * max(columns - 1, 0) <= width:
        return [_aligned(row, widths) for row in cleaned]
    return [line for row in cleaned for line in join_fitting(row, width, "  ")]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (one + " " * (widths[n] - width_of(one)) for n, one in enumerate(row))
    return GAP.join(padded).rstrip()


def format_age(age: timedelta) -> str:
    """`6 m 12 s`, `3 h 5 m`, `2 d 4 h`: two units at most."""
    seconds = int(age.total_seconds())
    units = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    parts: list[str] = []
    for unit, length in units:
        number, seconds = divmod(seconds, length)
        if number or (unit == "s" and not parts):
            parts.append(f"{number} {unit}")
        if len(parts) == 2:
            break
    return " ".join(parts)


def format_moment(moment: datetime, now: datetime) -> str:
    """A time of day in UTC, with its date where that is another day."""
    form = "%H:%M:%SZ" if abs(now - moment) < _DAY else "%Y-%m-%d %H:%M:%SZ"
    return moment.strftime(form)


def quote_word(word: str) -> str:
    """A name as one word of a shell command, safe to copy."""
    return shlex.quote(clean(word))
