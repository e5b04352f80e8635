"""What one plane holds of one kind, as far as its watch has told: snapshots, indexes, and how far
we have seen.

Readers get `Snapshot`s: bytes and a read-only header, decoded for whoever asks, so nobody
can change what is stored. Index functions run once, when an object is stored (`indexing.py`); what
they return is kept beside the snapshot and is all that mapping functions need of the body. What has
not changed for a while is packed. The store never asks a plane anything: `reflector.py` fills it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

import msgspec

from compute_operator_kit.budget import LONG_BODY
from compute_operator_kit.errors import InvariantError, LimitExceededError
from compute_operator_kit.expectations import Expectation, SeenGone, SeenVersion, Waiters
from compute_operator_kit.indexing import NO_VALUES, IndexFunction, Indexing, Values
from compute_operator_kit.keeping import Keeping
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.objects import (
    Absent,
    Delivered,
    Metadata,
    Snapshot,
    Unreadable,
    parse_version,
)
from compute_operator_kit.outline import Outline

_Place: TypeAlias = tuple[str, str]  # namespace, name
CACHE_EXHAUSTED: Final = "CacheExhausted"


class Serving(StrEnum):
    """Whether the plane has the kind, as far as we know."""

    UNKNOWN = "unknown"
    SERVED = "served"
    NOT_SERVED = "not-served"


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One object as the store holds it: what a mapping function sees of it."""

    snapshot: Snapshot
    values: Values = NO_VALUES

    @property
    def key(self) -> ObjectKey:
        return self.snapshot.key

    @property
    def metadata(self) -> Metadata:
        return self.snapshot.metadata

    def without_body(self) -> Entry:
        return Entry(self.snapshot.without_body(), self.values)

    def packed(self) -> Entry:
        return Entry(self.snapshot.packed(), self.values)


class Change(msgspec.Struct, frozen=True, gc=False):
    """An object before and after; both sides, because what it no longer says must wake
    somebody too.
    """

    before: Entry | None
    after: Entry | None
    is_initial: bool = False  # part of the first list: not urgent
    is_inferred: bool = False  # a list no longer had it; no delete event was seen

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The sides that exist, the older one first."""
        return tuple(side for side in (self.before, self.after) if side is not None)

    def without_bodies(self) -> Change:
        """The same for who compares versions; what is short stays as it is."""
        if not any(len(side.snapshot.kept) > LONG_BODY for side in self.entries):
            return self
        before, after = (side and side.without_body() for side in (self.before, self.after))
        return Change(before, after, self.is_initial, self.is_inferred)

    @property
    def key(self) -> ObjectKey:
        side = self.before or self.after
        if side is None:
            raise InvariantError("reading a change: it has no side")
        return side.snapshot.key


@dataclass(frozen=True, slots=True)
class Listing:
    """What the last complete list was like; who would delete by inference asks for two of them."""

    number: int
    at: timedelta
    held_before: int
    vanished: int


class View(Protocol):
    """What a reader may do with a store: everything but change it."""

    @property
    def plane(self) -> PlaneName: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def serving(self) -> Serving: ...

    @property
    def listing(self) -> Listing | None: ...

    @property
    def is_synced(self) -> bool: ...

    def get(self, namespace: str, name: str) -> Snapshot | Absent | Unreadable: ...

    def entry(self, namespace: str, name: str) -> Entry | None: ...

    def snapshots(self, namespace: str = "") -> tuple[Snapshot, ...] | Unreadable: ...

    def by_index(self, index: str, value: str) -> tuple[Snapshot, ...] | Unreadable: ...

    def entries_by_index(self, index: str, value: str) -> tuple[Entry, ...]: ...

    def index_values(self, index: str) -> tuple[str, ...]: ...

    def has_reached(self, resource_version: str) -> bool: ...


class Caches(Protocol):
    """All stores of all engaged planes, for reading."""

    def view(self, plane: PlaneName, kind: Kind) -> View:
        """Raises `PlaneGoneError` when the plane is not engaged."""
        ...

    def planes(self, role: Role) -> tuple[PlaneName, ...]:
        """Engaged planes of a role, sorted."""
        ...


class Store:
    """Objects of one kind on one plane."""

    def __init__(
        self,
        plane: PlaneName,
        kind: Kind,
        indexes: Mapping[str, IndexFunction] | None = None,
        outline: Outline | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        self.plane = plane
        self.kind = kind
        self.serving = Serving.UNKNOWN
        self.listing: Listing | None = None
        self.refusal = ""  # why nothing of it is held although the plane serves it
        self._keeping = keeping
        self._indexing = Indexing(indexes or {}, outline)
        self._entries: dict[_Place, Entry] = {}
        self._indexes: dict[str, dict[str, dict[_Place, None]]] = {
            name: {} for name in self._indexing.names
        }
        # Since `pack_resting` was last called; None where nobody calls it.
        self._arrived: dict[_Place, None] | None = None
        self._settling: dict[_Place, None] = {}  # before that, and not packed yet
        self._seen = 0
        self._life = 0  # counts restores and withdrawals: versions of another life mean nothing
        self._waiters = Waiters()

    # reading ---------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        """Complete at least once since the kind was (last) served."""
        return self.listing is not None

    @property
    def seen_version(self) -> int:
        """Everything up to this version of the plane is in here."""
        return self._seen

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return True  # an empty store is a store: `if store` must not mean "if it holds anything"

    def get(self, namespace: str, name: str) -> Snapshot | Absent | Unreadable:
        """`Unreadable` before the first complete list: half a view looks like a mass deletion."""
        if not self.is_synced:
            return self._unreadable()
        entry = self._entries.get((namespace, name))
        return entry.snapshot if entry else Absent()

    def entry(self, namespace: str, name: str) -> Entry | None:
        """As `get`, for mapping functions, which only look for keys to wake."""
        return self._entries.get((namespace, name))

    def snapshots(self, namespace: str = "") -> tuple[Snapshot, ...] | Unreadable:
        """All objects, of one namespace if it is given, in order of namespace and name."""
        if not self.is_synced:
            return self._unreadable()
        places = sorted(p for p in self._entries if not namespace or p[0] == namespace)
        return tuple(self._entries[place].snapshot for place in places)

    def by_index(self, index: str, value: str) -> tuple[Snapshot, ...] | Unreadable:
        """Objects whose index function gave this value, in order of namespace and name."""
        if not self.is_synced:
            return self._unreadable()
        return tuple(entry.snapshot for entry in self.entries_by_index(index, value))

    def entries_by_index(self, index: str, value: str) -> tuple[Entry, ...]:
        """As `by_index`, for mapping functions, which only look for keys to wake."""
        places = self._index(index).get(value, {})
        return tuple(self._entries[place] for place in sorted(places))

    def index_values(self, index: str) -> tuple[str, ...]:
        """Every value the index knows, sorted."""
        return tuple(sorted(self._index(index)))

    def has_reached(self, resource_version: str) -> bool:
        """Whether everything up to this version has been seen: what is held lived then.

        Not so in the middle of a list: it brings what is new before it tells what is gone.
        """
        return self._seen >= parse_version(resource_version)

    def _index(self, index: str) -> dict[str, dict[_Place, None]]:
        found = self._indexes.get(index)
        if found is None:
            raise InvariantError(f"reading {self.kind.kind} on {self.plane!r}: no index {index!r}")
        return found

    def _unreadable(self) -> Unreadable:
        if self.refusal:
            return Unreadable(self.refusal)
        return Unreadable("NotServed" if self.serving is Serving.NOT_SERVED else "NotSynced")

    @property
    def index_failures(self) -> int:
        return self._indexing.failures

    # waiting ---------------------------------------------------------------------------------

    def expect_version(self, version: int) -> SeenVersion:
        """The expectation to see everything up to this version of the plane's present life."""
        return SeenVersion(version, self._life)

    def expect_gone(
        self, namespace: str, name: str, uid: Uid, *, is_going_enough: bool = True
    ) -> SeenGone:
        """The expectation to see this object go, in the plane's present life."""
        return SeenGone(namespace, name, uid, is_going_enough, self._life)

    def has_met(self, expectation: Expectation) -> bool:
        match expectation:
            case SeenVersion(version, life):
                return self._seen >= version or self._life != life
            case SeenGone(namespace, name, uid, is_going_enough, life):
                entry = self._entries.get((namespace, name))
                if entry is None or entry.metadata.uid != uid or self._life != life:
                    return True
                return is_going_enough and entry.metadata.is_deleting

    def when_met(self, expectation: Expectation, call: Callable[[], None]) -> None:
        """Calls once when it is met; at once if it is already."""
        if self.has_met(expectation):
            call()
        else:
            self._waiters.add(expectation, call)

    # resting ---------------------------------------------------------------------------------

    def pack_resting(self) -> Iterator[None]:
        """Packs what has not changed since this was called before, one object per step.

        Called every few seconds. It may be left in the middle for others to run: what changes
        meanwhile is left as it comes, and rests from then on.
        """
        if self._arrived is None:
            self._arrived = dict.fromkeys(self._entries)
        resting, settling = self._settling, self._arrived
        self._settling, self._arrived = settling, {}
        for place in resting:
            entry = self._entries.get(place)
            if entry is None or place in settling or place in self._arrived:
                continue
            packed = entry.packed()
            self._entries[place] = packed
            if self._keeping is not None:
                self._keeping.replace(entry.snapshot, packed.snapshot)
            yield

    # filling (the reflector's side) ----------------------------------------------------------

    def put(self, delivered: Delivered) -> Change | None:
        """Stores a version; None when the store already has exactly that one."""
        snapshot = delivered.snapshot
        place = (snapshot.key.namespace, snapshot.key.name)
        before = self._entries.get(place)
        if before is not None and _is_same(before.metadata, snapshot.metadata):
            if not before.snapshot.has_body:
                self._refill(place, before, delivered)
            return None
        values = self._evaluate(delivered, before)
        if self._keeping is not None:
            kept = self._keep(self._keeping, place, before, delivered)
            if kept is None:
                return None
            snapshot = kept
        after = Entry(snapshot, values)
        self._entries[place] = after
        if self._arrived is not None:
            self._arrived[place] = None
        self._reindex(place, before, after)
        self._waiters.look(place, self.has_met)
        return Change(before, after, is_initial=not self.is_synced)

    def remove(self, namespace: str, name: str, *, is_inferred: bool = False) -> Change | None:
        """Forgets an object; None when there was none."""
        place = (namespace, name)
        before = self._entries.pop(place, None)
        if before is None:
            return None
        if self._keeping is not None:
            self._keeping.release(place, before.snapshot)
        self._reindex(place, before, None)
        self._waiters.look(place, self.has_met)
        return Change(before, None, is_inferred=is_inferred)

    def reach(self, version: int) -> None:
        """Everything up to this version has been put or removed."""
        self._seen = max(self._seen, version)
        self._waiters.reach(self._seen)

    def complete(self, places: Iterable[_Place], *, version: int, at: timedelta) -> list[Change]:
        """Ends a list: what it did not have is gone, and from now on the store can be believed.

        The version may be lower than one already seen: the plane was restored from a backup, and
        what waited for a version of its former life waits no longer.
        """
        listed = set(places)
        held = len(self._entries)
        missing = [place for place in self._entries if place not in listed]
        changes = [self.remove(*place, is_inferred=True) for place in missing]
        number = self.listing.number + 1 if self.listing else 1
        self.listing = Listing(number, at, held, len(missing))
        self.serving = Serving.SERVED
        self.refusal = ""
        if version < self._seen:
            self._begin_life()
        self._seen = version
        self._waiters.reach(version)
        return [change for change in changes if change is not None]

    def withdraw(self) -> list[Change]:
        """The kind is not served (any more): everything is gone from here, and nothing is known."""
        self.serving = Serving.NOT_SERVED
        self.listing = None
        changes = [self.remove(*place, is_inferred=True) for place in list(self._entries)]
        self._begin_life()
        return [change for change in changes if change is not None]

    def drop(self, reason: str) -> None:
        """Holds nothing from here on, and tells of no change: nothing is gone, it is only not
        known, until a list completes.
        """
        self.refusal = reason
        self.listing = None
        if self._keeping is not None:
            for place, entry in self._entries.items():
                self._keeping.release(place, entry.snapshot)
        self._entries.clear()
        for index in self._indexes.values():
            index.clear()
        self._settling.clear()
        if self._arrived is not None:
            self._arrived.clear()
        self._begin_life()

    @property
    def lacks_bodies(self) -> bool:
        """Bodies were left out for which there would be room now: a list brings them."""
        return self._keeping is not None and self._keeping.lacks_bodies

    def _keep(
        self, keeping: Keeping, place: _Place, before: Entry | None, delivered: Delivered
    ) -> Snapshot | None:
        """The object as far as there is room for it; None where there is none at all."""
        held = None if before is None else before.snapshot
        kept = keeping.keep(place, held, delivered.snapshot, self._indexing)
        if kept is None and keeping.refuses:
            raise LimitExceededError(
                CACHE_EXHAUSTED,
                f"caching {self.kind.plural} of {self.plane!r}: they exceed its budget",
                plane=self.plane,
            )
        return kept

    def _refill(self, place: _Place, before: Entry, delivered: Delivered) -> None:
        """The version that is held without a body has come with it once more."""
        kept = (
            None if self._keeping is None else self._keep(self._keeping, place, before, delivered)
        )
        if kept is not None:
            self._entries[place] = Entry(kept, before.values)

    def _begin_life(self) -> None:
        self._life += 1
        self._seen = 0
        self._waiters.release_all()

    def _evaluate(self, delivered: Delivered, before: Entry | None) -> Values:
        if before is None:
            return self._indexing.evaluate(delivered, None, NO_VALUES)
        return self._indexing.evaluate(delivered, before.metadata, before.values)

    def _reindex(self, place: _Place, before: Entry | None, after: Entry | None) -> None:
        for name, index in self._indexes.items():
            old = before.values.get(name, ()) if before else ()
            new = after.values.get(name, ()) if after else ()
            if old == new:
                continue
            for value in old:
                places = index[value]
                del places[place]
                if not places:
                    del index[value]
            for value in new:
                index.setdefault(value, {})[place] = None


def _is_same(found: Metadata, arrived: Metadata) -> bool:
    return found.uid == arrived.uid and found.resource_version == arrived.resource_version
