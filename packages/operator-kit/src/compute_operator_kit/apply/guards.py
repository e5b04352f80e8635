"""Guards of writes: a lock of this process and a live read of the plane around one write.

Without them, a child is created under a parent that is being deleted, or a parent is deleted while
a child is created. A guard is data in an intent and only reads; a refusal is no error: the plan was
made from outdated caches. Locks serialise workers of this process; against other processes the
preconditions of the API server hold.

Many children of one parent are created one after another, each with a read of the parent. A lock
passes that read on to its next holder for a moment: only a holder with another kind of guard may
have deleted the parent in between, and that drops the read.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeAlias, assert_never

from compute_operator_kit.client.interface import KubeClient, Page, Selector
from compute_operator_kit.client.list_bounds import ListBounds
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.keys import ObjectKey, PlaneName
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import (
    Guard,
    RequireExists,
    RequireGone,
    RequireNone,
    RequireUnchanged,
)

FindKube: TypeAlias = Callable[[PlaneName], KubeClient]

# Other processes may delete a parent at any time, also between a read and a write. Caches see that
# within milliseconds; this bounds how long they may lag unnoticed.
VALID_FOR: Final = timedelta(seconds=5)


class _Lock:
    """One lock with the number of its holders and waiters."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class Locks:
    """Locks by key, each kept while it is in use, and the reads made under them."""

    def __init__(self) -> None:
        self._locks: dict[ObjectKey, _Lock] = {}
        # By lock the guard that read its parent as live, and when; the oldest first.
        self._alive: OrderedDict[ObjectKey, tuple[RequireExists, timedelta]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._locks)

    async def take(self, key: ObjectKey) -> None:
        """Acquires the lock of a key; the caller must `release` it."""
        entry = self._locks.get(key)
        if entry is None:
            entry = self._locks[key] = _Lock()
        entry.users += 1
        try:
            await entry.lock.acquire()
        except BaseException:
            self._drop_if_unused(key, entry)
            raise

    def release(self, key: ObjectKey) -> None:
        entry = self._locks[key]
        entry.lock.release()
        self._drop_if_unused(key, entry)

    def _drop_if_unused(self, key: ObjectKey, entry: _Lock) -> None:
        entry.users -= 1
        if not entry.users:
            del self._locks[key]

    def is_known_alive(self, guard: Guard, now: timedelta) -> bool:
        """Whether an earlier holder of the lock read the same parent as live a moment ago."""
        if not isinstance(guard, RequireExists) or guard.lock is None:
            return False
        entry = self._alive.get(guard.lock)
        if entry is None or now - entry[1] >= VALID_FOR:
            return False
        return (entry[0].key, entry[0].uid) == (guard.key, guard.uid)

    def record(self, guard: Guard, read_at: timedelta, *, is_refused: bool) -> None:
        """Records the read of a guard; guards of other kinds precede writes that may delete."""
        if guard.lock is None:
            return
        self._alive.pop(guard.lock, None)
        if isinstance(guard, RequireExists) and not is_refused:
            self._alive[guard.lock] = (guard, read_at)
        while self._alive and read_at - next(iter(self._alive.values()))[1] >= VALID_FOR:
            self._alive.popitem(last=False)


async def find_refusal(guard: Guard, kube_of: FindKube) -> str | None:
    """The reason why the guard refuses the write; None if it does not."""
    match guard:
        case RequireExists():
            return await _check_live(guard, kube_of(guard.key.plane))
        case RequireNone():
            return await _check_none(guard, kube_of(guard.plane))
        case RequireGone():
            return await _check_gone(guard, kube_of(guard.key.plane))
        case RequireUnchanged():
            return await _check_unchanged(guard, kube_of(guard.key.plane))
        case _:
            assert_never(guard)


async def _check_live(guard: RequireExists, kube: KubeClient) -> str | None:
    live = await kube.get(guard.key)
    if isinstance(live, Absent):
        return f"{guard.key} is absent"
    if guard.uid is not None and live.metadata.uid != guard.uid:
        return f"{guard.key} is another object"
    return f"{guard.key} is being deleted" if live.metadata.is_deleting else None


async def _check_none(guard: RequireNone, kube: KubeClient) -> str | None:
    """Lists page by page until the first object that counts."""
    selector, token = Selector.of_labels(guard.labels), ""
    bounds = ListBounds(guard.plane, guard.kind)
    while True:
        page = await kube.list(
            guard.kind, namespace=guard.namespace, selector=selector, continue_token=token
        )
        if not isinstance(page, Page):
            # "Kind not served" and "list expired" do not mean that there is none.
            raise UnavailableError(
                "ListIncomplete",
                f"listing {guard.kind.plural} on {guard.plane!r}: no complete answer",
                plane=guard.plane,
            )
        bounds.count(page, token)
        for item in page.items:
            if guard.counts_deleting or not item.snapshot.metadata.is_deleting:
                return f"{item.snapshot.key} exists"
        if page.unreadable:
            return f"an object of kind {guard.kind.kind} cannot be read"
        if not page.continue_token:
            return None
        token = page.continue_token


async def _check_gone(guard: RequireGone, kube: KubeClient) -> str | None:
    live = await kube.get(guard.key)
    if isinstance(live, Absent) or (guard.uid is not None and live.metadata.uid != guard.uid):
        return None
    return f"{guard.key} still exists"


async def _check_unchanged(guard: RequireUnchanged, kube: KubeClient) -> str | None:
    live = await kube.get(guard.key)
    if isinstance(live, Absent) or live.metadata.uid != guard.uid:
        return f"{guard.key} is gone"
    version, generation = live.metadata.resource_version, live.metadata.generation
    if guard.resource_version and guard.resource_version != version:
        return f"{guard.key} is in another version"
    if guard.generation is not None and guard.generation != generation:
        return f"{guard.key} is in another generation"
    return None
