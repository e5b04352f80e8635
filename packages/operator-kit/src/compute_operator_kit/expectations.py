"""What a reader waits to see in a store, and who waits for it.

Used for reading one's own writes: a pass must not start from a view older than what the pass before
it wrote. Pure bookkeeping; the store says when something is met, `write_gate.py` says what is
expected.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from compute_operator_kit.keys import Uid


class SeenVersion(msgspec.Struct, frozen=True, gc=False):
    """Met once the store has seen everything up to this version, or the plane began another life.

    A life ends when the plane is restored from a backup or stops serving the kind: its versions are
    never reached again, and waiting for one would be for ever.
    """

    version: int
    life: int


@dataclass(frozen=True, slots=True)
class SeenGone:
    """Met once this very object is absent, replaced or deleting in the store.

    A delete has no version of its own to wait for: an API server answers it without one.
    """

    namespace: str
    name: str
    uid: Uid
    is_going_enough: bool = True  # False: deleting it is already; only its absence counts
    life: int = 0  # of the store; in another one a restored backup may have the object again


Expectation: TypeAlias = SeenVersion | SeenGone
_Call: TypeAlias = Callable[[], None]


class Waiters:
    """Callbacks by what they wait for; each is called once."""

    def __init__(self) -> None:
        self._versions: list[tuple[int, int, _Call]] = []
        self._order = itertools.count()  # earlier waiters first among equal versions
        self._gone: dict[tuple[str, str], list[tuple[SeenGone, _Call]]] = {}

    def __len__(self) -> int:
        return len(self._versions) + sum(map(len, self._gone.values()))

    def add(self, expectation: Expectation, call: _Call) -> None:
        match expectation:
            case SeenVersion(version):
                heapq.heappush(self._versions, (version, next(self._order), call))
            case SeenGone(namespace, name):
                self._gone.setdefault((namespace, name), []).append((expectation, call))

    def reach(self, version: int) -> None:
        """Everything up to this version was seen."""
        while self._versions and self._versions[0][0] <= version:
            heapq.heappop(self._versions)[2]()

    def look(self, place: tuple[str, str], has_met: Callable[[Expectation], bool]) -> None:
        """The object at this place changed."""
        if place not in self._gone:
            return
        waiting = self._gone.pop(place)
        left = [(expected, call) for expected, call in waiting if not has_met(expected)]
        if left:
            self._gone[place] = left
        for expected, call in waiting:
            if (expected, call) not in left:
                call()

    def release_all(self) -> None:
        """Nothing that is waited for will come."""
        calls = [call for _, _, call in sorted(self._versions, key=lambda waiter: waiter[:2])]
        calls += [call for waiting in self._gone.values() for _, call in waiting]
        self._versions.clear()
        self._gone.clear()
        for call in calls:
            call()
