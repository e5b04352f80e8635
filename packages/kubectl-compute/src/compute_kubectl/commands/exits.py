"""Exit codes, and the error that ends a command with one line and a code."""

from __future__ import annotations

from typing import Final

READY: Final = 0
NOT_READY: Final = 1
USAGE: Final = 2
NOT_JUDGED: Final = 3


class CommandError(Exception):
    """A command that ends early: one line for the user, and the exit code."""

    def __init__(self, text: str, code: int = USAGE) -> None:
        super().__init__(text)
        self.code = code
