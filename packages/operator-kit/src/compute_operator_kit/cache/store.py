"""The store of one kind on one plane: cached objects, indexes, and the resourceVersion reached.

Readers get `Snapshot`s of bytes with a read-only header, so that no reader can change what others
see. Index functions run once, when an object is stored (`indexers.py`); mapping functions need only
their values and decode no body. Objects that have not changed for a while are compressed.
`reflector.py` fills the store; the store itself sends no request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final, TypeAlias

from compute_operator_kit.cache.body_retention import BodyRetention
from compute_operator_kit.cache.expectations import Expectation, SeenGone, SeenVersion, Waiters
from compute_operator_kit.cache.indexers import NO_VALUES, Indexers, IndexFunction, Values
from compute_operator_kit.cache.lister import (
    CachedObject,
    Caches,
    Change,
    Lister,
    Listing,
    ServingState,
)
from compute_operator_kit.core.errors import InvariantError, LimitExceededError
from compute_operator_kit.core.keys import Kind, PlaneName, Uid
from compute_operator_kit.core.objects import (
    Absent,
    Metadata,
    ReceivedObject,
    Snapshot,
    Unreadable,
    parse_version,
)
from compute_operator_kit.core.partial_decoder import PartialDecoder

# Names of `lister` are exported again for modules that import them from here.
__all__ = [
    "CACHE_EXHAUSTED",
    "CachedObject",
    "Caches",
    "Change",
    "Lister",
    "Listing",
    "ServingState",
    "Store",
]

_ObjectName: TypeAlias = tuple[str, str]  # namespace, name
CACHE_EXHAUSTED: Final = "CacheExhausted"


class Store:
    """The cached objects of one kind on one plane, with indexes and expectations."""

    def __init__(
        self,
        plane: PlaneName,
        kind: Kind,
        indexes: Mapping[str, IndexFunction] | None = None,
        decoder: PartialDecoder | None = None,
        retention: BodyRetention | None = None,
    ) -> None:
        self.plane = plane
        self.kind = kind
        self.serving = ServingState.UNKNOWN
        self.listing: Listing | None = None
        self.refusal = ""  # why a kind that the plane serves is not cached
        self._retention = retention
        self._indexers = Indexers(indexes or {}, decoder)
        self._entries: dict[_ObjectName, CachedObject] = {}
        self._indexes: dict[str, dict[str, dict[_ObjectName, None]]] = {
            name: {} for name in self._indexers.names
        }
        # Since the last call of `pack_resting`; None until the first one.
        self._changed: dict[_ObjectName, None] | None = None
        self._resting_soon: dict[_ObjectName, None] = {}  # before it, not compressed yet
        self._seen_version = 0
        self._epoch = 0  # counts restores and ends of serving; versions of epochs do not compare
        self._waiters = Waiters()

    # reading ---------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        """Whether a list has completed since the kind is served."""
        return self.listing is not None

    @property
    def seen_version(self) -> int:
        """The store has all events up to this resourceVersion."""
        return self._seen_version

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return True  # an empty store is true: `if store` must not mean `if len(store)`

    def get(self, namespace: str, name: str) -> Snapshot | Absent | Unreadable:
        """`Unreadable` before the first complete list: half a list looks like a mass deletion."""
        if not self.is_synced:
            return self._unreadable()
        entry = self._entries.get((namespace, name))
        return entry.snapshot if entry else Absent()

    def entry(self, namespace: str, name: str) -> CachedObject | None:
        """As `get`, also before the first complete list; for mapping functions."""
        return self._entries.get((namespace, name))

    def snapshots(self, namespace: str = "") -> tuple[Snapshot, ...] | Unreadable:
        """All objects, of one namespace if it is given, in order of namespace and name."""
        if not self.is_synced:
            return self._unreadable()
        object_names = sorted(n for n in self._entries if not namespace or n[0] == namespace)
        return tuple(self._entries[name].snapshot for name in object_names)

    def by_index(self, index: str, value: str) -> tuple[Snapshot, ...] | Unreadable:
        """Objects with this value of an index, in order of namespace and name."""
        if not self.is_synced:
            return self._unreadable()
        return tuple(entry.snapshot for entry in self.entries_by_index(index, value))

    def entries_by_index(self, index: str, value: str) -> tuple[CachedObject, ...]:
        """As `by_index`, also before the first complete list; for mapping functions."""
        object_names = self._index(index).get(value, {})
        return tuple(self._entries[name] for name in sorted(object_names))

    def index_values(self, index: str) -> tuple[str, ...]:
        """All values of an index, sorted."""
        return tuple(sorted(self._index(index)))

    def has_reached(self, resource_version: str) -> bool:
        """Whether all events up to this version were seen, so that each cached object existed then.

        False during a list, which adds new objects before it removes deleted ones.
        """
        return self._seen_version >= parse_version(resource_version)

    def _index(self, index: str) -> dict[str, dict[_ObjectName, None]]:
        names_by_value = self._indexes.get(index)
        if names_by_value is None:
            raise InvariantError(f"reading {self.kind.kind} on {self.plane!r}: no index {index!r}")
        return names_by_value

    def _unreadable(self) -> Unreadable:
        if self.refusal:
            return Unreadable(self.refusal)
        return Unreadable("NotServed" if self.serving is ServingState.NOT_SERVED else "NotSynced")

    # expectations ----------------------------------------------------------------------------

    def expect_version(self, version: int) -> SeenVersion:
        """The expectation of all events up to this version, in the present epoch."""
        return SeenVersion(version, self._epoch)

    def expect_gone(
        self, namespace: str, name: str, uid: Uid, *, is_deleting_enough: bool = True
    ) -> SeenGone:
        """The expectation that this object is deleted, in the present epoch."""
        return SeenGone(namespace, name, uid, is_deleting_enough, self._epoch)

    def has_met(self, expectation: Expectation) -> bool:
        match expectation:
            case SeenVersion(version, epoch):
                return self._seen_version >= version or self._epoch != epoch
            case SeenGone(namespace, name, uid, is_deleting_enough, epoch):
                entry = self._entries.get((namespace, name))
                if entry is None or entry.metadata.uid != uid or self._epoch != epoch:
                    return True
                return is_deleting_enough and entry.metadata.is_deleting

    def when_met(self, expectation: Expectation, callback: Callable[[], None]) -> None:
        """Calls back once, when the expectation is met; immediately if it is."""
        if self.has_met(expectation):
            callback()
        else:
            self._waiters.add(expectation, callback)

    # compression -----------------------------------------------------------------------------

    def pack_resting(self) -> Iterator[None]:
        """Compresses objects that have not changed since the last call, one object per step.

        To be called every few seconds. Other tasks may run between two steps: an object that
        changes meanwhile is not compressed in this call.
        """
        if self._changed is None:
            self._changed = dict.fromkeys(self._entries)
        resting, resting_next = self._resting_soon, self._changed
        self._resting_soon, self._changed = resting_next, {}
        for object_name in resting:
            entry = self._entries.get(object_name)
            if entry is None or object_name in resting_next or object_name in self._changed:
                continue
            packed = entry.packed()
            self._entries[object_name] = packed
            if self._retention is not None:
                self._retention.replace(entry.snapshot, packed.snapshot)
            yield

    # writes of the reflector -----------------------------------------------------------------

    def put(self, received: ReceivedObject) -> Change | None:
        """Stores a version of an object; None if the store has that version already."""
        snapshot = received.snapshot
        object_name = (snapshot.key.namespace, snapshot.key.name)
        before = self._entries.get(object_name)
        if before is not None and _is_same(before.metadata, snapshot.metadata):
            if not before.snapshot.has_body:
                self._refill(object_name, before, received)
            return None
        values = self._evaluate(received, before)
        if self._retention is not None:
            kept = self._retain(self._retention, object_name, before, received)
            if kept is None:
                return None
            snapshot = kept
        after = CachedObject(snapshot, values)
        self._entries[object_name] = after
        if self._changed is not None:
            self._changed[object_name] = None
        if before is None or before.index_values is not values:
            self._reindex(object_name, before, after)
        self._waiters.recheck(object_name, self.has_met)
        return Change(before, after, is_initial=not self.is_synced)

    def remove(self, namespace: str, name: str, *, is_inferred: bool = False) -> Change | None:
        """Removes an object; None if there was none."""
        object_name = (namespace, name)
        before = self._entries.pop(object_name, None)
        if before is None:
            return None
        if self._retention is not None:
            self._retention.release(object_name, before.snapshot)
        self._reindex(object_name, before, None)
        self._waiters.recheck(object_name, self.has_met)
        return Change(before, None, is_inferred=is_inferred)

    def advance_to(self, version: int) -> None:
        """All events up to this version have been stored."""
        self._seen_version = max(self._seen_version, version)
        self._waiters.advance_to(self._seen_version)

    def replace(
        self, object_names: Iterable[_ObjectName], *, version: int, at: timedelta
    ) -> list[Change]:
        """Ends a list: objects that it lacks are removed, and the store is synced.

        A version lower than the one reached means that the plane was restored from a backup: a new
        epoch begins, and expectations of the former one are dropped.
        """
        listed = set(object_names)
        held_before = len(self._entries)
        missing = [object_name for object_name in self._entries if object_name not in listed]
        changes = [self.remove(*object_name, is_inferred=True) for object_name in missing]
        number = self.listing.number + 1 if self.listing else 1
        self.listing = Listing(number, at, held_before, len(missing))
        self.serving = ServingState.SERVED
        self.refusal = ""
        if version < self._seen_version:
            self._begin_epoch()
        self._seen_version = version
        self._waiters.advance_to(version)
        return [change for change in changes if change is not None]

    def mark_unserved(self) -> list[Change]:
        """The kind is not served: all objects are removed, and the store is not synced."""
        self.serving = ServingState.NOT_SERVED
        self.listing = None
        changes = [
            self.remove(*object_name, is_inferred=True) for object_name in list(self._entries)
        ]
        self._begin_epoch()
        return [change for change in changes if change is not None]

    def drop(self, reason: str) -> None:
        """Empties the store without changes: the objects are not deleted, only unknown until a list
        completes.
        """
        self.refusal = reason
        self.listing = None
        if self._retention is not None:
            for object_name, entry in self._entries.items():
                self._retention.release(object_name, entry.snapshot)
        self._entries.clear()
        for index in self._indexes.values():
            index.clear()
        self._resting_soon.clear()
        if self._changed is not None:
            self._changed.clear()
        self._begin_epoch()

    @property
    def lacks_bodies(self) -> bool:
        """Whether bodies were left out that fit now; a new list brings them."""
        return self._retention is not None and self._retention.lacks_bodies

    def _retain(
        self,
        retention: BodyRetention,
        object_name: _ObjectName,
        before: CachedObject | None,
        received: ReceivedObject,
    ) -> Snapshot | None:
        """The received object, or its header if only that fits; None if not even that does."""
        held = None if before is None else before.snapshot
        kept = retention.retain(object_name, held, received.snapshot, self._indexers)
        if kept is None and retention.refuses:
            raise LimitExceededError(
                CACHE_EXHAUSTED,
                f"caching {self.kind.plural} of {self.plane!r}: they exceed its budget",
                plane=self.plane,
            )
        return kept

    def _refill(
        self, object_name: _ObjectName, before: CachedObject, received: ReceivedObject
    ) -> None:
        """Stores the body of a version that is cached without it."""
        if self._retention is None:
            return
        kept = self._retain(self._retention, object_name, before, received)
        if kept is not None:
            self._entries[object_name] = CachedObject(kept, before.index_values)

    def _begin_epoch(self) -> None:
        self._epoch += 1
        self._seen_version = 0
        self._waiters.release_all()

    def _evaluate(self, received: ReceivedObject, before: CachedObject | None) -> Values:
        if before is None:
            return self._indexers.evaluate(received, None, NO_VALUES)
        return self._indexers.evaluate(received, before.metadata, before.index_values)

    def _reindex(
        self, object_name: _ObjectName, before: CachedObject | None, after: CachedObject | None
    ) -> None:
        for name, index in self._indexes.items():
            old = before.index_values.get(name, ()) if before else ()
            new = after.index_values.get(name, ()) if after else ()
            if old == new:
                continue
            for value in old:
                object_names = index[value]
                del object_names[object_name]
                if not object_names:
                    del index[value]
            for value in new:
                index.setdefault(value, {})[object_name] = None


def _is_same(held: Metadata, received: Metadata) -> bool:
    return held.uid == received.uid and held.resource_version == received.resource_version
