"""Errors of building and running planes: one line with a remedy.

Every failure that is not a bug is a `PlanesError`, which the command prints without a traceback.
The remedy is part of the error, because the raising code knows what was tried.
"""

from __future__ import annotations


class PlanesError(Exception):
    """What happened and what to do; `detail` holds further lines."""

    def __init__(self, what: str, *, remedy: str, detail: str = "") -> None:
        super().__init__(f"{what}; {remedy}" + (f"\n{detail}" if detail else ""))
        self.what = what
        self.remedy = remedy
        self.detail = detail


class ProcessDiedError(PlanesError):
    """A process of the stack ended unexpectedly; `process` is its name."""

    def __init__(self, process: str, what: str, *, remedy: str, detail: str = "") -> None:
        super().__init__(f"{process}: {what}", remedy=remedy, detail=detail)
        self.process = process
