"""Output of the story: a terminal with its last lines redrawn, or plain lines.

Without a terminal only final results are written, each once, so that two runs differ in names and
times only. Everything written that way is kept as the transcript.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, TextIO

from e2e.demo.picture import CityRow, Progress, fit, render_bar, render_table, render_text

PLAIN_WIDTH: Final = 78
CLEAR_BELOW: Final = "\x1b[J"
BOLD: Final = "\x1b[1m"
USUAL: Final = "\x1b[0m"


class Screen:
    """The output of one run."""

    def __init__(self, out: TextIO | None = None, *, is_live: bool | None = None) -> None:
        self._out = out or sys.stdout
        is_terminal = self._out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._is_live = is_terminal if is_live is None else is_live
        self._has_colour = self._is_live and not os.environ.get("NO_COLOR")
        self._drawn = 0
        self._began = time.monotonic()
        self.transcript: list[str] = []
        self.has_ended = False  # of the story, not of the program

    @property
    def width(self) -> int:
        """Usable width; a full line would wrap on some terminals."""
        if not self._is_live and "COLUMNS" not in os.environ:
            return PLAIN_WIDTH
        return shutil.get_terminal_size((PLAIN_WIDTH + 1, 24)).columns - 1

    @property
    def elapsed(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._began)

    # --- permanent output ------------------------------------------------------------------------

    def title(self, text: str) -> None:
        lines = render_text(text, self.width, indent="")
        marks = (BOLD, USUAL) if self._has_colour else ("", "")
        self._write(["", *(f"{marks[0]}{line}{marks[1]}" for line in lines)])

    def say(self, text: str) -> None:
        self._write(render_text(text, self.width))

    def show(self, line: str) -> None:
        """Writes a line unwrapped, so that it can be copied."""
        self._write([f"  {line}"])

    def table(self, rows: Sequence[CityRow]) -> None:
        self._write(render_table(rows, self.width))

    # --- temporary output ------------------------------------------------------------------------

    def draw(self, rows: Sequence[CityRow], progress: Progress) -> None:
        if not self._is_live:
            return
        lines = render_table(rows, self.width) if rows else []
        lines.append(render_bar(progress, self.width))
        self._erase()
        self._out.write("".join(f"{fit(line, self.width)}\n" for line in lines))
        self._out.flush()
        self._drawn = len(lines)

    def clear(self) -> None:
        """Erases the temporary lines before permanent ones are written."""
        self._erase()
        self._out.flush()

    def _erase(self) -> None:
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}F{CLEAR_BELOW}")
            self._drawn = 0

    def _write(self, lines: Sequence[str]) -> None:
        self._erase()
        self.transcript += lines
        self._out.write("".join(f"{line}\n" for line in lines))
        self._out.flush()
