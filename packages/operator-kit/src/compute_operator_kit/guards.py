"""Checks that must hold around a write: a lock of this process, and a fresh answer of the plane.

A guard is data in an intent; here it is asked. It only reads. A refusal is an answer, not an error:
the world is not as the plan assumed, and the next look will tell. The locks serialise workers of
this process alone; against other processes the server's own preconditions hold.

Many children of one parent come one after another, and each asks whether the parent lives. Whoever
has the lock takes over the answer of who had it before, for a moment: nobody of this process can
have deleted the parent since, unless the lock was in the hands of somebody who deletes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeAlias, assert_never

from compute_operator_kit.errors import UnavailableError
from compute_operator_kit.intents import Guard, IfGone, IfNone, IfUnchanged, OnlyUnder
from compute_operator_kit.keys import ObjectKey, PlaneName
from compute_operator_kit.kube import Kube, Page, Selector
from compute_operator_kit.list_bounds import ListBounds
from compute_operator_kit.objects import Absent

FindKube: TypeAlias = Callable[[PlaneName], Kube]

# Somebody else may delete a parent at any time, between a read and a write too. Caches tell of that
# within milliseconds; this is for how long they may be behind unnoticed.
BELIEVED_FOR: Final = timedelta(seconds=5)


class _Lock:
    """One lock, and how many hold or want it."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class Locks:
    """Locks by key, kept only while somebody holds or wants one; and what was found under them."""

    def __init__(self) -> None:
        self._locks: dict[ObjectKey, _Lock] = {}
        # Guards that found their parent alive, by lock, and when each was asked; the oldest first.
        self._alive: OrderedDict[ObjectKey, tuple[OnlyUnder, timedelta]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._locks)

    async def take(self, key: ObjectKey) -> None:
        """Waits until nobody else holds it; whoever took it gives it back."""
        found = self._locks.get(key)
        if found is None:
            found = self._locks[key] = _Lock()
        found.users += 1
        try:
            await found.lock.acquire()
        except BaseException:
            self._leave(key, found)
            raise

    def give_back(self, key: ObjectKey) -> None:
        found = self._locks[key]
        found.lock.release()
        self._leave(key, found)

    def _leave(self, key: ObjectKey, found: _Lock) -> None:
        found.users -= 1
        if not found.users:
            del self._locks[key]

    # What is handed on with a lock; asked and told by who holds it.

    def is_known_alive(self, guard: Guard, now: timedelta) -> bool:
        """Whether a holder before us has found so, a moment ago."""
        if not isinstance(guard, OnlyUnder) or guard.lock is None:
            return False
        found = self._alive.get(guard.lock)
        if found is None or now - found[1] >= BELIEVED_FOR:
            return False
        return (found[0].key, found[0].uid) == (guard.key, guard.uid)

    def note(self, guard: Guard, asked_at: timedelta, *, is_refused: bool) -> None:
        """What a guard was told; one of any other kind stands before a write that may delete."""
        if guard.lock is None:
            return
        self._alive.pop(guard.lock, None)
        if isinstance(guard, OnlyUnder) and not is_refused:
            self._alive[guard.lock] = (guard, asked_at)
        while self._alive and asked_at - next(iter(self._alive.values()))[1] >= BELIEVED_FOR:
            self._alive.popitem(last=False)


async def find_refusal(guard: Guard, kube_of: FindKube) -> str | None:
    """Why the guard refuses; None if it does not."""
    match guard:
        case OnlyUnder():
            return await _check_live(guard, kube_of(guard.key.plane))
        case IfNone():
            return await _check_none(guard, kube_of(guard.plane))
        case IfGone():
            return await _check_gone(guard, kube_of(guard.key.plane))
        case IfUnchanged():
            return await _check_unchanged(guard, kube_of(guard.key.plane))
        case _:
            assert_never(guard)


async def _check_live(guard: OnlyUnder, kube: Kube) -> str | None:
    found = await kube.get(guard.key)
    if isinstance(found, Absent):
        return f"{guard.key} is absent"
    if guard.uid is not None and found.metadata.uid != guard.uid:
        return f"{guard.key} is another object"
    return f"{guard.key} is being deleted" if found.metadata.is_deleting else None


async def _check_none(guard: IfNone, kube: Kube) -> str | None:
    """Page by page: the first that counts is enough."""
    selector, token = Selector.of_labels(guard.labels), ""
    bounds = ListBounds(guard.plane, guard.kind)
    while True:
        page = await kube.list(
            guard.kind, namespace=guard.namespace, selector=selector, continue_token=token
        )
        if not isinstance(page, Page):
            # Neither "kind not served" nor "list expired" says that there is none.
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


async def _check_gone(guard: IfGone, kube: Kube) -> str | None:
    found = await kube.get(guard.key)
    if isinstance(found, Absent) or (guard.uid is not None and found.metadata.uid != guard.uid):
        return None
    return f"{guard.key} still exists"


async def _check_unchanged(guard: IfUnchanged, kube: Kube) -> str | None:
    found = await kube.get(guard.key)
    if isinstance(found, Absent) or found.metadata.uid != guard.uid:
        return f"{guard.key} is gone"
    version, generation = found.metadata.resource_version, found.metadata.generation
    if guard.resource_version and guard.resource_version != version:
        return f"{guard.key} is in another version"
    if guard.generation is not None and guard.generation != generation:
        return f"{guard.key} is in another generation"
    return None
