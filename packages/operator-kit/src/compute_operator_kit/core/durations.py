"""Durations in configuration files: `15s`, `10m`, `200ms`, `1h30m`, as in Go.

A number without a unit is refused: seconds and milliseconds would be confused. Pure.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

UNITS: Final = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
}
PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(us|ms|s|m|h)")
WHOLE: Final = re.compile(rf"(?:{PART.pattern})+")


def parse_duration(text: str) -> timedelta:
    """The duration of a text; `0` is allowed without a unit."""
    if text == "0":
        return timedelta()
    if not WHOLE.fullmatch(text):
        raise ValueError("expected a duration such as 15s, 10m or 200ms")
    total = timedelta()
    for number, unit in PART.findall(text):
        total += float(number) * UNITS[unit]
    return total


def format_duration(duration: timedelta) -> str:
    """The shortest form: 90 s is `1m30s`, 0.2 s is `200ms`."""
    microseconds = duration // timedelta(microseconds=1)
    if not microseconds:
        return "0s"
    text = ""
    for unit in ("h", "m", "s", "ms", "us"):
        count, microseconds = divmod(microseconds, UNITS[unit] // timedelta(microseconds=1))
        text += f"{count}{unit}" if count else ""
    return text
