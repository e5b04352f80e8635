"""Decides whether a copy without an Instance may go now, and finds those nobody told us of.

An Instance that was seen to be deleted takes its copy along at once. One that is missing from a
list, or from the cache at start, is an inference: where that would hit many at once, the cell is
listed afresh, twice and a minute apart, before anything goes (cell.md 12, faults.md D9). Around
each removal the Instance is read live besides; that is the plan's guard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from compute_cell_operator.assembly import Tools
from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.plane_names import CELL, HUB
from compute_cell_operator.write_back.mapping import derive_key
from compute_cell_operator.write_back.sweep import Leftovers, Place, find_leftovers
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.errors import UnavailableError
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.kube import Page, Writer
from compute_operator_kit.mass_delete import Allowed, MassDeleteGuard, Ruling
from compute_operator_kit.objects import Unreadable


class Copies:
    """What is left on the hub of Instances that are not here any more."""

    def __init__(self, tools: Tools, writer: Writer) -> None:
        self._tools = tools
        self._writer = writer
        self._guard = MassDeleteGuard()
        self._seen_going: set[Place] = set()
        self._looking = asyncio.Lock()

    # what is told ----------------------------------------------------------------------------

    def note(self, change: Change) -> None:
        """An Instance of the cell changed."""
        place = _place(change.key)
        if change.after is not None:
            self._seen_going.discard(place)
        elif not change.is_inferred:
            self._seen_going.add(place)

    def is_seen_going(self, key: ObjectKey) -> bool:
        return _place(key) in self._seen_going

    def forget(self, key: ObjectKey) -> None:
        """Nothing is left of it."""
        self._seen_going.discard(_place(key))

    def prune(self) -> None:
        """What left nothing on the hub need not be remembered: a standby never looks at it."""
        copies = self._tools.reach.caches.view(HUB, INSTANCE)
        if copies.is_synced:
            kept = {place for place in self._seen_going if copies.entry(*place) is not None}
            self._seen_going = kept

    # ruling ----------------------------------------------------------------------------------

    async def rule(self, key: ObjectKey) -> Ruling:
        """Whether the copy of this name may go now."""
        place, clock = _place(key), self._tools.clock
        if self.is_seen_going(key):
            return Allowed()
        # One look at a time: two passes that look side by side would confirm each other.
        async with self._looking:
            if self._guard.needs_look(HUB, place, clock.monotonic()):
                found = await self._look()
                self._guard.record(HUB, found.missing, found.total, clock.monotonic())
        return self._guard.judge(HUB, place, clock.monotonic())

    async def _look(self) -> Leftovers:
        """By caches; where that would remove many, by what the cell itself says now."""
        found = self.find()
        if found is None:
            raise UnavailableError("NotSynced", "looking for leftovers: a cache is not complete")
        if not found.is_large:
            return found
        listed = await self._list()
        return find_leftovers(_copies(self._tools.reach.caches), listed, self._seen_going)

    async def _list(self) -> frozenset[Place]:
        kube = self._tools.reach.kube(CELL, self._writer)
        listed: set[Place] = set()
        token = ""
        while True:
            page = await kube.list(INSTANCE, continue_token=token)
            if not isinstance(page, Page) or page.unreadable:
                message = f"listing {INSTANCE.plural} on {CELL!r}: no complete answer"
                raise UnavailableError("ListIncomplete", message, plane=CELL)
            listed.update(_place(item.snapshot.key) for item in page.items)
            token = page.continue_token
            if not token:
                return frozenset(listed)

    # sweeping --------------------------------------------------------------------------------

    def find(self) -> Leftovers | None:
        """What the caches say; None where one cannot be believed."""
        caches = self._tools.reach.caches
        instances = caches.view(CELL, INSTANCE).snapshots()
        if isinstance(instances, Unreadable) or not caches.view(HUB, INSTANCE).is_synced:
            return None
        present = {_place(found.key) for found in instances}
        return find_leftovers(_copies(caches), present, self._seen_going)

    def find_keys(self) -> Iterator[ObjectKey]:
        """Every name that has a copy and no Instance, however that came to be."""
        caches = self._tools.reach.caches
        instances = caches.view(CELL, INSTANCE)
        for place in _copies(caches):
            key = derive_key(ObjectKey(HUB, INSTANCE, *place))
            if instances.is_synced and instances.entry(*place) is None:
                yield key


def _copies(caches: Caches) -> tuple[Place, ...]:
    found = caches.view(HUB, INSTANCE).snapshots()
    return () if isinstance(found, Unreadable) else tuple(_place(one.key) for one in found)


def _place(key: ObjectKey) -> Place:
    return (key.namespace, key.name)
