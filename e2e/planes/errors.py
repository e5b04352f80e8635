"""What goes wrong while planes are built or run: one line a person can act on.

Everything a developer can meet without a bug of ours is a `PlanesError`; the command prints it
without a trace. A remedy belongs to the error, because whoever raises it knows what was tried.
"""

from __future__ import annotations


class PlanesError(Exception):
    """What happened, and what to do about it; `detail` is for what does not fit a line."""

    def __init__(self, what: str, *, remedy: str, detail: str = "") -> None:
        super().__init__(f"{what}; {remedy}" + (f"\n{detail}" if detail else ""))
        self.what = what
        self.remedy = remedy
        self.detail = detail


class ProcessDiedError(PlanesError):
    """A process of the stack ended although nobody asked it to; `process` names it."""

    def __init__(self, process: str, what: str, *, remedy: str, detail: str = "") -> None:
        super().__init__(f"{process}: {what}", remedy=remedy, detail=detail)
        self.process = process
