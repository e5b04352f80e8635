"""Holds a key back until the caches have seen what the last pass on it wrote.

Without it, a pass that starts before its own writes come back through the watch creates twice,
deletes the wrong thing, or judges a generation it has already changed. Children count too: what a
pass on a root wrote to any object of any plane holds that root. A kind nobody watches cannot be
waited for and is not.

The gate also knows a write of ours when it comes back. Where the pass that wrote has said that
nothing follows from that write (`is_final`), and the object comes back in exactly the version that
was answered, its root need not be looked at again for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from compute_operator_kit.cache import Change, Store
from compute_operator_kit.expectations import Expectation
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.objects import Snapshot, parse_version

FindStore: TypeAlias = Callable[[PlaneName, Kind], Store | None]


class Awaited(msgspec.Struct, frozen=True):
    """What holds a key: an expectation, and the store that has not met it yet."""

    store: Store
    expectation: Expectation
    is_final: bool = False  # the pass has drawn every conclusion from its write already
    # Final writes of the same pass to the same object before this one: they come back too.
    earlier: tuple[Expectation, ...] = ()


class WriteGate:
    """The gate of one controller."""

    def __init__(self, find_store: FindStore) -> None:
        self._find_store = find_store
        self._awaited: dict[ObjectKey, dict[ObjectKey, Awaited]] = {}

    def wrote_at(self, root: ObjectKey, written: Snapshot, *, is_final: bool = False) -> None:
        """A pass on `root` wrote this version, or learnt that the plane is at least that far."""
        store = self._find_store(written.key.plane, written.key.kind)
        version = parse_version(written.metadata.resource_version)
        if store is not None:
            awaited = Awaited(store, store.expect_version(version), is_final)
            self._expect(root, written.key, awaited)

    def recognise(self, root: ObjectKey, change: Change) -> bool:
        """Whether a change is a final write of the last pass on `root`, come back as it was made.

        Told before the store has reached that version, and everything before it has been told: what
        the gate waited for is met by this very change.
        """
        awaited = self._awaited.get(root)
        if awaited is None or change.after is None:
            return False
        found = awaited.get(change.key)
        if found is None or not found.is_final:
            return False
        seen = found.store.expect_version(parse_version(change.after.metadata.resource_version))
        if seen in found.earlier:
            return True
        if found.expectation != seen:
            return False
        del awaited[change.key]
        if not awaited:
            del self._awaited[root]
        return True

    def deleted(self, root: ObjectKey, key: ObjectKey, uid: Uid) -> None:
        """A pass on `root` had this object deleted; with finalizers on it, it is deleting now."""
        self._expect_gone(root, key, uid, is_going_enough=True)

    def vanished(self, root: ObjectKey, key: ObjectKey, uid: Uid) -> None:
        """A pass on `root` took the last finalizer off this object, or learnt that it is gone."""
        self._expect_gone(root, key, uid, is_going_enough=False)

    def _expect_gone(
        self, root: ObjectKey, key: ObjectKey, uid: Uid, *, is_going_enough: bool
    ) -> None:
        store = self._find_store(key.plane, key.kind)
        if store is not None:
            gone = store.expect_gone(key.namespace, key.name, uid, is_going_enough=is_going_enough)
            self._expect(root, key, Awaited(store, gone))

    def ensure_ready(self, root: ObjectKey) -> Awaited | None:
        """What still holds the key; None when nothing does."""
        awaited = self._awaited.get(root)
        if awaited is None:
            return None
        for place, wanted in tuple(awaited.items()):
            # A plane that was disengaged meanwhile has another store, or none: nothing will come.
            is_current = self._find_store(place.plane, place.kind) is wanted.store
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
        written = self._awaited.setdefault(root, {})
        before = written.get(key)
        if before is not None:
            # Final only if all of them are. One that is not may be what was learnt by reading:
            # somebody else may have written that version, on top of ours.
            is_final = awaited.is_final and before.is_final
            earlier = (*before.earlier, before.expectation) if is_final else ()
            awaited = msgspec.structs.replace(awaited, is_final=is_final, earlier=earlier)
        written[key] = awaited
