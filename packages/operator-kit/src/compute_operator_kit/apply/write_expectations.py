"""Write expectations: a key is held until the caches have seen the writes of its last reconcile.

Without them, a reconcile that starts before its own writes come back through the watch creates
twice, deletes the wrong object, or compares a generation it has already changed. A write to any
object on any plane holds the root key; a kind that is not cached cannot be waited for.

They also recognise own writes: if an intent has `ignore_own_event` and the watch event has exactly
the version of the response, the root is not enqueued for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from compute_operator_kit.cache.expectations import Expectation
from compute_operator_kit.cache.lister import Change
from compute_operator_kit.cache.store import Store
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Snapshot, parse_version

FindStore: TypeAlias = Callable[[PlaneName, Kind], Store | None]


class AwaitedWrite(msgspec.Struct, frozen=True):
    """An expectation that holds a key, and the store that is to meet it."""

    store: Store
    expectation: Expectation
    ignore_own_event: bool = False  # its watch event does not enqueue the root
    # Earlier such writes of the same reconcile to the same object: their events come back too.
    earlier: tuple[Expectation, ...] = ()


class WriteExpectations:
    """The awaited writes of one controller, by root key."""

    def __init__(self, find_store: FindStore) -> None:
        self._find_store = find_store
        self._awaited: dict[ObjectKey, dict[ObjectKey, AwaitedWrite]] = {}

    def expect_written(
        self, root: ObjectKey, written: Snapshot, *, ignore_own_event: bool = False
    ) -> None:
        """A reconcile of `root` wrote this version, or read it from the plane."""
        store = self._find_store(written.key.plane, written.key.kind)
        version = parse_version(written.metadata.resource_version)
        if store is not None:
            awaited = AwaitedWrite(store, store.expect_version(version), ignore_own_event)
            self._expect(root, written.key, awaited)

    def recognise(self, root: ObjectKey, change: Change) -> bool:
        """Whether a change is a write of the last reconcile of `root` with `ignore_own_event`.

        Called before the store advances to that version; events before it were handled, so that
        this change meets the expectation.
        """
        awaited = self._awaited.get(root)
        if awaited is None or change.after is None:
            return False
        write = awaited.get(change.key)
        if write is None or not write.ignore_own_event:
            return False
        received = write.store.expect_version(parse_version(change.after.metadata.resource_version))
        if received in write.earlier:
            return True
        if write.expectation != received:
            return False
        del awaited[change.key]
        if not awaited:
            del self._awaited[root]
        return True

    def expect_deleting(self, root: ObjectKey, key: ObjectKey, uid: Uid) -> None:
        """A reconcile of `root` deleted this object; with finalizers it is deleting now."""
        self._expect_removal(root, key, uid, is_deleting_enough=True)

    def expect_gone(self, root: ObjectKey, key: ObjectKey, uid: Uid) -> None:
        """A reconcile of `root` removed the last finalizer of this object, or read it as absent."""
        self._expect_removal(root, key, uid, is_deleting_enough=False)

    def _expect_removal(
        self, root: ObjectKey, key: ObjectKey, uid: Uid, *, is_deleting_enough: bool
    ) -> None:
        store = self._find_store(key.plane, key.kind)
        if store is not None:
            expectation = store.expect_gone(
                key.namespace, key.name, uid, is_deleting_enough=is_deleting_enough
            )
            self._expect(root, key, AwaitedWrite(store, expectation))

    def find_unmet(self, root: ObjectKey) -> AwaitedWrite | None:
        """A write that still holds the key; None if there is none."""
        awaited = self._awaited.get(root)
        if awaited is None:
            return None
        for key, write in tuple(awaited.items()):
            # A plane that was disengaged since has another store or none: no event will come.
            is_current = self._find_store(key.plane, key.kind) is write.store
            if is_current and not write.store.has_met(write.expectation):
                return write
            del awaited[key]
        del self._awaited[root]
        return None

    def clear(self, root: ObjectKey) -> None:
        """Drops what holds a key that is not reconciled any more."""
        self._awaited.pop(root, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        """Drops all keys of a plane that is gone."""
        for root in [root for root in self._awaited if is_gone(root)]:
            del self._awaited[root]

    def __len__(self) -> int:
        return len(self._awaited)

    def _expect(self, root: ObjectKey, key: ObjectKey, awaited: AwaitedWrite) -> None:
        written = self._awaited.setdefault(root, {})
        before = written.get(key)
        if before is not None:
            # Ignored only if all of them are: one that is not may be a version that was read, and
            # another writer may have written it on top of ours.
            is_ignored = awaited.ignore_own_event and before.ignore_own_event
            earlier = (*before.earlier, before.expectation) if is_ignored else ()
            awaited = msgspec.structs.replace(awaited, ignore_own_event=is_ignored, earlier=earlier)
        written[key] = awaited
