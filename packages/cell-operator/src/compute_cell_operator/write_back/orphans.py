"""Orphaned copies on the hub: which have no Instance in the cell, and whether they may be deleted.

The copy of an Instance that was seen to be deleted is deleted at once. An Instance that is only
missing from a list, or from the cache at start, is an inference: where that would hit many copies,
the cell is listed live, twice and a minute apart, before any is deleted (cell.md 12, faults.md D9).
Around each delete the Instance is read live besides, by the guard of the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.planes import CELL, HUB, INSTANCE
from compute_cell_operator.write_back.watches import derive_key
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import FieldOwner, Page
from compute_operator_kit.controller.mass_delete import (
    FEWEST,
    LARGEST_SHARE,
    MassDeleteGuard,
    RemovalAllowed,
    Ruling,
)
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Unreadable

NamespacedName: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class OrphanCount:
    """Copies without an Instance, of all copies that were compared."""

    missing: frozenset[NamespacedName]
    total: int

    @property
    def is_large(self) -> bool:
        """More than one comparison may delete (faults.md D9)."""
        return len(self.missing) >= FEWEST and len(self.missing) > LARGEST_SHARE * self.total


def find_orphans(
    copies: Iterable[NamespacedName],
    instances: AbstractSet[NamespacedName],
    seen_deleted: AbstractSet[NamespacedName] = frozenset(),
) -> OrphanCount:
    """Instances in `seen_deleted` are left out: their absence is no inference."""
    compared = [name for name in copies if name not in seen_deleted]
    missing = frozenset(name for name in compared if name not in instances)
    return OrphanCount(missing, len(compared))


class OrphanedCopies:
    """Copies on the hub of Instances that the cell no longer has."""

    def __init__(self, deps: Dependencies, writer: FieldOwner) -> None:
        self._deps = deps
        self._writer = writer
        self._guard = MassDeleteGuard()
        self._seen_deleted: set[NamespacedName] = set()
        self._counting = asyncio.Lock()

    # changes of Instances --------------------------------------------------------------------

    def note(self, change: Change) -> None:
        """An Instance of the cell changed."""
        name = _name_of(change.key)
        if change.after is not None:
            self._seen_deleted.discard(name)
        elif not change.is_inferred:
            self._seen_deleted.add(name)

    def is_seen_deleted(self, key: ObjectKey) -> bool:
        return _name_of(key) in self._seen_deleted

    def forget(self, key: ObjectKey) -> None:
        """Neither Instance nor copy is left."""
        self._seen_deleted.discard(_name_of(key))

    def prune(self) -> None:
        """Forgets names without a copy: on a standby no reconcile does, and the set would grow."""
        copies = self._deps.context.caches.lister(HUB, INSTANCE)
        if copies.is_synced:
            kept = {name for name in self._seen_deleted if copies.entry(*name) is not None}
            self._seen_deleted = kept

    # deletion --------------------------------------------------------------------------------

    async def rule(self, key: ObjectKey) -> Ruling:
        """Whether the copy of this name may be deleted now."""
        name, clock = _name_of(key), self._deps.clock
        if self.is_seen_deleted(key):
            return RemovalAllowed()
        # One count at a time: two concurrent ones would confirm each other.
        async with self._counting:
            if self._guard.needs_look(HUB, name, clock.monotonic()):
                orphans = await self._count()
                self._guard.record(HUB, orphans.missing, orphans.total, clock.monotonic())
        return self._guard.judge(HUB, name, clock.monotonic())

    async def _count(self) -> OrphanCount:
        """From caches; where that would delete many, from a live list of the cell."""
        orphans = self.find()
        if orphans is None:
            raise UnavailableError("NotSynced", "looking for leftovers: a cache is not complete")
        if not orphans.is_large:
            return orphans
        listed = await self._list()
        return find_orphans(_copies(self._deps.context.caches), listed, self._seen_deleted)

    async def _list(self) -> frozenset[NamespacedName]:
        kube = self._deps.context.kube(CELL, self._writer)
        listed: set[NamespacedName] = set()
        token = ""
        while True:
            page = await kube.list(INSTANCE, continue_token=token)
            if not isinstance(page, Page) or page.unreadable:
                message = f"listing {INSTANCE.plural} on {CELL!r}: no complete answer"
                raise UnavailableError("ListIncomplete", message, plane=CELL)
            listed.update(_name_of(item.snapshot.key) for item in page.items)
            token = page.continue_token
            if not token:
                return frozenset(listed)

    # sweep -----------------------------------------------------------------------------------

    def find(self) -> OrphanCount | None:
        """The orphans by the caches; None where one is incomplete."""
        caches = self._deps.context.caches
        instances = caches.lister(CELL, INSTANCE).snapshots()
        if isinstance(instances, Unreadable) or not caches.lister(HUB, INSTANCE).is_synced:
            return None
        present = {_name_of(instance.key) for instance in instances}
        return find_orphans(_copies(caches), present, self._seen_deleted)

    def find_keys(self) -> Iterator[ObjectKey]:
        """The keys of all names with a copy and without an Instance, whatever the cause."""
        caches = self._deps.context.caches
        instances = caches.lister(CELL, INSTANCE)
        for name in _copies(caches):
            if instances.is_synced and instances.entry(*name) is None:
                yield derive_key(ObjectKey(HUB, INSTANCE, *name))


def _copies(caches: Caches) -> tuple[NamespacedName, ...]:
    copies = caches.lister(HUB, INSTANCE).snapshots()
    return () if isinstance(copies, Unreadable) else tuple(_name_of(copy.key) for copy in copies)


def _name_of(key: ObjectKey) -> NamespacedName:
    return (key.namespace, key.name)
