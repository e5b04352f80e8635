"""The verdicts on all cells, as other controllers read them. Pure.

A cell without a verdict is neither heard nor dark: what is shown of it stays as it is, so that a
restart of this process takes no condition back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from compute_management_operator.hub.hearing.judge import Records


class Audibility(StrEnum):
    """Whether the cells of one object are heard."""

    HEARD = "heard"
    PARTLY = "partly"  # some of several are dark
    DARK = "dark"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Hearing:
    """The cells that are heard, and those that are dark."""

    heard: frozenset[str] = frozenset()
    dark: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()  # named by Instances, and their Cluster does not exist

    def judge_cells(self, cells: Iterable[str]) -> Audibility:
        """Of a deployment with these cells; without any there is nothing to hear."""
        named = frozenset(cells)
        if not named:
            return Audibility.HEARD
        if named <= self.dark:
            return Audibility.DARK
        if named & self.dark:
            return Audibility.PARTLY
        return Audibility.HEARD if named <= self.heard else Audibility.UNDECIDED

    def judge_instance(self, cell: str) -> Audibility:
        """Of an Instance; one of a Cluster that does not exist is not heard either."""
        return Audibility.DARK if cell in self.gone else self.judge_cells((cell,) if cell else ())


NOT_JUDGED: Final = Hearing()


def derive_hearing(records: Records, gone: frozenset[str] = frozenset()) -> Hearing:
    cells = records.cells.items()
    return Hearing(
        heard=frozenset(name for name, one in cells if one.is_dark is False),
        dark=frozenset(name for name, one in cells if one.is_dark),
        gone=gone,
    )


def changed_cells(before: Hearing, after: Hearing) -> frozenset[str]:
    """Cells with another verdict."""
    return (before.heard ^ after.heard) | (before.dark ^ after.dark) | (before.gone ^ after.gone)
