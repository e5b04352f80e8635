"""Read-only views of the caches: cached objects, changes, and the lister of one kind on one plane.

Mapping functions and `observe` need only these and never a `Store`: what they read they cannot
change, so that all readers of a cache see the same objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

import msgspec

from compute_operator_kit.cache.budget import LONG_BODY
from compute_operator_kit.cache.indexers import NO_VALUES, Values
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable


class ServingState(StrEnum):
    """Whether the plane serves the kind, by the last answer."""

    UNKNOWN = "unknown"
    SERVED = "served"
    NOT_SERVED = "not-served"


class CachedObject(msgspec.Struct, frozen=True, gc=False):
    """One cached object with its index values, as a mapping function sees it."""

    snapshot: Snapshot
    index_values: Values = NO_VALUES

    @property
    def key(self) -> ObjectKey:
        return self.snapshot.key

    @property
    def metadata(self) -> Metadata:
        return self.snapshot.metadata

    def without_body(self) -> CachedObject:
        return CachedObject(self.snapshot.without_body(), self.index_values)

    def packed(self) -> CachedObject:
        return CachedObject(self.snapshot.packed(), self.index_values)


class Change(msgspec.Struct, frozen=True, gc=False):
    """An object before and after an event; both sides, because a reference that was removed must
    enqueue its former target too.
    """

    before: CachedObject | None
    after: CachedObject | None
    is_initial: bool = False  # of the first list: low priority
    is_inferred: bool = False  # deleted because a list lacks it, not by an event

    @property
    def entries(self) -> tuple[CachedObject, ...]:
        """Those of `before` and `after` that exist."""
        return tuple(side for side in (self.before, self.after) if side is not None)

    def without_bodies(self) -> Change:
        """The change without long bodies, for a comparison of versions."""
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
    """The last complete list of a store."""

    number: int
    at: timedelta
    held_before: int
    vanished: int


class Lister(Protocol):
    """The read-only view of a store."""

    @property
    def plane(self) -> PlaneName: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def serving(self) -> ServingState: ...

    @property
    def listing(self) -> Listing | None: ...

    @property
    def is_synced(self) -> bool: ...

    def get(self, namespace: str, name: str) -> Snapshot | Absent | Unreadable: ...

    def entry(self, namespace: str, name: str) -> CachedObject | None: ...

    def snapshots(self, namespace: str = "") -> tuple[Snapshot, ...] | Unreadable: ...

    def by_index(self, index: str, value: str) -> tuple[Snapshot, ...] | Unreadable: ...

    def entries_by_index(self, index: str, value: str) -> tuple[CachedObject, ...]: ...

    def index_values(self, index: str) -> tuple[str, ...]: ...

    def has_reached(self, resource_version: str) -> bool: ...


def is_unserved(lister: Lister) -> bool:
    """Whether the plane has answered that it does not serve the kind."""
    return lister.serving is ServingState.NOT_SERVED


class Caches(Protocol):
    """The listers of all engaged planes."""

    def lister(self, plane: PlaneName, kind: Kind) -> Lister:
        """Raises `PlaneGoneError` when the plane is not engaged."""
        ...

    def planes(self, role: Role) -> tuple[PlaneName, ...]:
        """Engaged planes of a role, sorted."""
        ...
