"""Which Instances this process has not reconciled yet since it leads. No I/O.

After a power cut the cell's API server still has the status from before. Until each Instance had
one reconcile and one write-back, the hub's copies may state what was true before the cut, and the
cell must not testify that they are true now.
"""

from __future__ import annotations

from collections.abc import Iterable

from compute_operator_kit.core.keys import ObjectKey


class FirstPasses:
    """Keys of each controller that still need their first pass."""

    def __init__(self, controllers: Iterable[str]) -> None:
        self._passed: dict[str, set[ObjectKey]] = {name: set() for name in controllers}
        self._is_complete = False

    def note(self, controller: str, key: ObjectKey) -> None:
        """A reconcile of this key ended, and what it had to write was written."""
        if not self._is_complete:
            self._passed[controller].add(key)

    def check(self, keys: Iterable[ObjectKey]) -> bool:
        """Whether each of these had a pass in every controller; once True, True for good."""
        if not self._is_complete:
            existing = frozenset(keys)
            self._is_complete = all(existing <= passed for passed in self._passed.values())
            if self._is_complete:
                self._passed = {name: set() for name in self._passed}
        return self._is_complete
