"""The counter behind every resourceVersion: one total order per plane, or for planes that share a
storage.

Project planes of one Milo share a counter, so it can be handed to several stores. It only ever
rises.
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
