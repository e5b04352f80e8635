"""Holds a key back until the caches have seen what the last pass on it wrote.

Without it, a pass that starts before its own writes come back through the watch creates twice,
deletes the wrong thing, or judges a generation it has already changed. Children count too: what a
pass on a root wrote to any object of any plane holds that root. A kind nobody watches cannot be
waited for and is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from compute_operator_kit.cache import Store, parse_version
from compute_operator_kit.expectations import Expectation, SeenGone
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.objects import Snapshot

FindStore: TypeAlias = Callable[[PlaneName, Kind], Store | None]


@dataclass(frozen=True, slots=True)
class Awaited:
    """What holds a key: an expectation, and the store that has not met it yet."""

    store: Store
    expectation: Expectation


class WriteGate:
    """The gate of one controller."""

    def __init__(self, find_store: FindStore) -> None:
        self._find_store = find_store
        self._awaited: dict[ObjectKey, dict[tuple[PlaneName, Kind, str, str], Awaited]] = {}

    def wrote_at(self, root: ObjectKey, written: Snapshot) -> None:
        """A pass on `root` wrote this version, or learnt that the plane is at least that far."""
        store = self._find_store(written.key.plane, written.key.kind)
        version = parse_version(written.metadata.resource_version)
        if store is not None:
            self._expect(root, written.key, Awaited(store, store.expect_version(version)))

    def deleted(self, root: ObjectKey, key: ObjectKey, uid: Uid) -> None:
        """A pass on `root` had this object deleted; with finalizers on it, it is deleting now."""
        self._expect_gone(root, key, SeenGone(key.namespace, key.name, uid))

    def vanished(self, root: ObjectKey, key: ObjectKey, uid: Uid) -> None:
        """A pass on `root` took the last finalizer off this object, or learnt that it is gone."""
        self._expect_gone(root, key, SeenGone(key.namespace, key.name, uid, is_going_enough=False))

    def _expect_gone(self, root: ObjectKey, key: ObjectKey, gone: SeenGone) -> None:
        store = self._find_store(key.plane, key.kind)
        if store is not None:
            self._expect(root, key, Awaited(store, gone))

    def ensure_ready(self, root: ObjectKey) -> Awaited | None:
        """What still holds the key; None when nothing does."""
        awaited = self._awaited.get(root)
        if awaited is None:
            return None
        for place, wanted in tuple(awaited.items()):
            # A plane that was disengaged meanwhile has another store, or none: nothing will come.
            is_current = self._find_store(place[0], place[1]) is wanted.store
            if is_current and not wanted.store.has_met(wanted.expectation):
                return wanted
            del awaited[place]
        del self._awaited[root]
        return None

    def clear(self, root: ObjectKey) -> None:
        """Nobody looks at this key any more."""
        self._awaited.pop(root, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        """Drops all keys of a plane that is gone."""
        for root in [root for root in self._awaited if is_gone(root)]:
            del self._awaited[root]

    def __len__(self) -> int:
        return len(self._awaited)

    def _expect(self, root: ObjectKey, key: ObjectKey, awaited: Awaited) -> None:
        place = (key.plane, key.kind, key.namespace, key.name)
        self._awaited.setdefault(root, {})[place] = awaited
