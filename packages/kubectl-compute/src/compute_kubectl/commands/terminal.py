"""Where a command writes: lines to standard output, one progress line to a terminal.

Output that is read by a program gets no colour, no progress line and a width of 100.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TextIO

from compute_kubectl.render.layout import clean

WIDTH_WITHOUT_TERMINAL: Final = 100
NARROWEST: Final = 40
_ERASE: Final = "\r\x1b[K"
_VERDICT: Final = re.compile(r"(?<=  )(ready|waiting|deleting|not visible)(?=  |$)")
_COLORS: Final = {"ready": "32", "waiting": "33", "deleting": "33", "not visible": "36"}


def _paint(word: re.Match[str]) -> str:
    return f"\x1b[{_COLORS[word[0]]}m{word[0]}\x1b[0m"


@dataclass(slots=True)
class Terminal:
    """Standard output and standard error of one command."""

    out: TextIO
    err: TextIO
    width: int = WIDTH_WITHOUT_TERMINAL
    has_color: bool = False
    is_live: bool = False
    _has_progress: bool = False

    @classmethod
    def of_process(cls, environ: Mapping[str, str], *, no_color: bool = False) -> Terminal:
        for stream in (sys.stdout, sys.stderr):
            # A terminal without our arrows shows a question mark in their place.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        is_terminal = sys.stdout.isatty()
        width = WIDTH_WITHOUT_TERMINAL
        if is_terminal:
            width = max(shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns, NARROWEST)
        color = is_terminal and not no_color and not environ.get("NO_COLOR")
        color = color and environ.get("TERM", "") != "dumb"
        return cls(sys.stdout, sys.stderr, width, color, sys.stderr.isatty())

    def show(self, lines: Iterable[str]) -> None:
        self.end_progress()
        for line in lines:
            self.out.write(f"{line}\n")

    def show_painted(self, lines: Iterable[str]) -> None:
        """Lines with the words of a verdict in colour; the words stay, whatever is shown."""
        if not self.has_color:
            self.show(lines)
            return
        self.show(_VERDICT.sub(_paint, line, count=1) for line in lines)

    def warn(self, text: str) -> None:
        self.end_progress()
        for line in text.splitlines() or [""]:
            self.err.write(f"{clean(line)}\n")

    def progress(self, text: str) -> None:
        """One line that the next one replaces; nothing where no terminal would show it."""
        if self.is_live:
            self.err.write(f"{_ERASE}{clean(text)[: self.width - 1]}…")
            self.err.flush()
            self._has_progress = True

    def end_progress(self) -> None:
        if self._has_progress:
            self.err.write(_ERASE)
            self.err.flush()
            self._has_progress = False
