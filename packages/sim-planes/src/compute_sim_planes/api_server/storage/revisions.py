"""The counter behind every resourceVersion: one total order per storage.

All project planes of one Milo share a counter, so it can be passed to several stores. It never
decreases.
"""

from __future__ import annotations


class Revisions:
    """Numbers commits."""

    def __init__(self, start: int = 1) -> None:
        self._current = start

    @property
    def current(self) -> int:
        return self._current

    def advance(self) -> int:
        self._current += 1
        return self._current
