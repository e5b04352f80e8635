"""Expectations of a store: versions to reach or objects to be gone, with callbacks.

A reconcile must not start from caches older than the writes of the last one: `apply` records what
is expected (`write_expectations.py`), and the store calls back when it is met. Pure.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from compute_operator_kit.core.keys import Uid


class SeenVersion(msgspec.Struct, frozen=True, gc=False):
    """Met once the store has seen all events up to this version, or is in another epoch.

    An epoch ends when the plane is restored from a backup or stops serving the kind: its versions
    are never reached again, and a key that waits for one would wait forever.
    """

    version: int
    epoch: int


@dataclass(frozen=True, slots=True)
class SeenGone:
    """Met once the object with this UID is absent, replaced or deleting in the store.

    The response to a delete has no resourceVersion to wait for.
    """

    namespace: str
    name: str
    uid: Uid
    is_deleting_enough: bool = True  # False: only its absence counts
    epoch: int = 0  # of the store; a restored backup may have the object again


Expectation: TypeAlias = SeenVersion | SeenGone
_Callback: TypeAlias = Callable[[], None]


class Waiters:
    """Callbacks by expectation; each is called once."""

    def __init__(self) -> None:
        self._versions: list[tuple[int, int, _Callback]] = []
        self._order = itertools.count()  # among equal versions, callbacks run in order
        self._gone: dict[tuple[str, str], list[tuple[SeenGone, _Callback]]] = {}

    def __len__(self) -> int:
        return len(self._versions) + sum(map(len, self._gone.values()))

    def add(self, expectation: Expectation, callback: _Callback) -> None:
        match expectation:
            case SeenVersion(version):
                heapq.heappush(self._versions, (version, next(self._order), callback))
            case SeenGone(namespace, name):
                self._gone.setdefault((namespace, name), []).append((expectation, callback))

    def advance_to(self, version: int) -> None:
        """All events up to this version were seen."""
        while self._versions and self._versions[0][0] <= version:
            heapq.heappop(self._versions)[2]()

    def recheck(self, name: tuple[str, str], has_met: Callable[[Expectation], bool]) -> None:
        """The object of this namespace and name changed."""
        if name not in self._gone:
            return
        waiting = self._gone.pop(name)
        unmet = [(expected, callback) for expected, callback in waiting if not has_met(expected)]
        if unmet:
            self._gone[name] = unmet
        for expected, callback in waiting:
            if (expected, callback) not in unmet:
                callback()

    def release_all(self) -> None:
        """Calls all callbacks: what they wait for never comes."""
        callbacks = [
            callback for _, _, callback in sorted(self._versions, key=lambda waiter: waiter[:2])
        ]
        callbacks += [callback for waiting in self._gone.values() for _, callback in waiting]
        self._versions.clear()
        self._gone.clear()
        for callback in callbacks:
            callback()
