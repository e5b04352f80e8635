"""Kinds of one plane that are watched on demand: when each is opened, and when it is closed.

```
           an object of a trigger kind appears · a key needs the kind · left-over objects
  closed ───────────────────────────────────────────────────────────────────────────────► open
    ▲                                                                                      │
    └──── no trigger object, and no key needed it, for `CLOSE_AFTER` (lists known) ◄───────┘
```

Most projects are empty most of the time, and a watch stream is most of what a plane costs. What is
not known counts as a demand: a kind is opened if left-over objects cannot be looked for, and is not
closed while a trigger kind, or a kind that its own objects keep open, is not completely listed.
Between the decision to close and the end of the watch nothing waits, so that no event is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from compute_operator_kit.cache.lister import Change
from compute_operator_kit.cache.reflector import Reflector
from compute_operator_kit.client.interface import NotServed, Page
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import InvariantError, ReconcileError
from compute_operator_kit.core.json import UndecodableError
from compute_operator_kit.core.keys import Kind
from compute_operator_kit.planes.delays import CLOSE_AFTER, FIRST_LIST_WITHIN
from compute_operator_kit.planes.engaged_plane import CachedKind, EngagedPlane, OnDemand

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OnDemandHooks:
    """What the registry does for a kind that was opened or closed."""

    watch: Callable[[CachedKind], Reflector]  # makes its reflector and runs it
    opened: Callable[[Kind], None]
    attempted: Callable[[Kind], None]
    closed: Callable[[Kind], None]


class KindsOnDemand:
    """The kinds on demand of one plane; the stores and reflectors are in `EngagedPlane`."""

    __slots__ = (
        "_clock",
        "_engaged",
        "_hooks",
        "_indexes",
        "_is_closing",
        "_kinds",
        "_unneeded",
        "triggers",
    )

    def __init__(self, engaged: EngagedPlane, clock: Clock, hooks: OnDemandHooks) -> None:
        self._engaged = engaged
        self._clock = clock
        self._hooks = hooks
        self._kinds: dict[Kind, tuple[CachedKind, OnDemand]] = {
            kind: (item, item.on_demand)
            for kind, item in engaged.watched.items()
            if item.on_demand is not None
        }
        self.triggers = frozenset(
            kind for _, demand in self._kinds.values() for kind in demand.triggers
        )
        self._indexes = {demand.index for _, demand in self._kinds.values()} - {""}
        self._unneeded: dict[
            Kind, timedelta
        ] = {}  # open kinds without a trigger object, since when
        self._is_closing = False  # whether a task waits for the time to close
        for kind in self.triggers:
            if kind not in engaged.stores:
                raise InvariantError(f"watching on demand of {kind.kind}: it is not always watched")

    # opening ---------------------------------------------------------------------------------

    def note_change(self, change: Change) -> None:
        """A trigger object changed; only one that appeared or went changes the demand, or one whose
        values in the index of a demand did.
        """
        if self._has_moved(change):
            self.update()

    def _has_moved(self, change: Change) -> bool:
        if change.before is None or change.after is None:
            return True
        before, after = change.before.index_values, change.after.index_values
        return any(before.get(index) != after.get(index) for index in self._indexes)

    def update(self) -> None:
        """Opens what trigger objects demand, and notes since when others are not demanded."""
        for kind, (_, demand) in self._kinds.items():
            if self._has_trigger(demand):
                self._unneeded.pop(kind, None)
                self._open(kind)
            elif self._engaged.is_open(kind) and kind not in self._unneeded:
                self._note_unneeded(kind)

    def require(self, kind: Kind) -> None:
        """Opens a kind for a reader that cannot go on without it; `CLOSE_AFTER` begins anew. A kind
        that is always watched is left alone.
        """
        if kind not in self._kinds:
            return
        self._open(kind)
        if not self._has_trigger(self._kinds[kind][1]):
            self._note_unneeded(kind)

    async def look_for_leftovers(self) -> None:
        """Opens closed kinds with objects, by one list of one object each; called once, after the
        first lists of the plane.
        """
        for kind, (item, demand) in self._kinds.items():
            if not demand.while_present or self._engaged.is_open(kind):
                continue
            if not self._are_known(demand) or await self._may_have_objects(item):
                self.require(kind)

    async def _may_have_objects(self, item: CachedKind) -> bool:
        try:
            page = await self._engaged.kube.list(item.kind, selector=item.selector, limit=1)
        except (ReconcileError, UndecodableError):
            return True  # not known: its reflector asks again
        if isinstance(page, Page):
            return bool(page.items) or page.unreadable > 0
        return not isinstance(page, NotServed)

    def _open(self, kind: Kind) -> None:
        if self._engaged.is_open(kind):
            return
        self._engaged.open(kind)
        fields = {"plane": self._engaged.plane.name, "kind": kind.kind}
        logger.debug("Opening a watch on demand", extra=fields)
        reflector = self._engaged.opening[kind] = self._hooks.watch(self._kinds[kind][0])
        self._hooks.opened(kind)
        self._engaged.tasks.start(self._await_first_list(reflector), f"opening {kind.kind}")

    async def _await_first_list(self, reflector: Reflector) -> None:
        """Ends the waiting of keys that can be reconciled without the kind."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LIST_WITHIN.total_seconds()):
                await reflector.attempted.wait()
        kind = reflector.store.kind
        if self._engaged.opening.get(kind) is reflector:
            del self._engaged.opening[kind]
            self._hooks.attempted(kind)

    # closing ---------------------------------------------------------------------------------

    def _note_unneeded(self, kind: Kind) -> None:
        self._unneeded[kind] = self._clock.monotonic()
        if not self._is_closing:
            self._is_closing = True
            self._engaged.tasks.start(self._close_unneeded(), "closing", on_crash=self._restart)

    def _restart(self) -> None:
        self._is_closing = False
        self.update()

    async def _close_unneeded(self) -> None:
        """Closes kinds when their time has come, until none is left that is open for nothing."""
        while self._unneeded:
            now = self._clock.monotonic()
            due = min(self._unneeded.values()) + CLOSE_AFTER
            if now < due:
                await self._clock.sleep(due - now)
                continue
            for kind, since in tuple(self._unneeded.items()):
                if since + CLOSE_AFTER <= now:
                    self._close_if_unneeded(kind, now)
        self._is_closing = False

    def _close_if_unneeded(self, kind: Kind, now: timedelta) -> None:
        if not self._may_close(kind):
            self._unneeded[kind] = now  # looked at again after another `CLOSE_AFTER`
            return
        del self._unneeded[kind]
        fields = {"plane": self._engaged.plane.name, "kind": kind.kind}
        logger.debug("Closing a watch on demand", extra=fields)
        self._engaged.close(kind)
        self._hooks.closed(kind)

    def _may_close(self, kind: Kind) -> bool:
        demand = self._kinds[kind][1]
        if self._has_trigger(demand) or not self._are_known(demand):
            return False
        if not demand.while_present:
            return True
        return self._engaged.is_known(kind) and not len(self._engaged.stores[kind])

    def _has_trigger(self, demand: OnDemand) -> bool:
        stores = (self._engaged.stores[kind] for kind in demand.triggers)
        if demand.index:
            return any(store.index_values(demand.index) for store in stores)
        return any(len(store) for store in stores)

    def _are_known(self, demand: OnDemand) -> bool:
        """Whether the trigger kinds are listed: a store before its first list is empty, too."""
        return all(self._engaged.is_known(kind) for kind in demand.triggers)
