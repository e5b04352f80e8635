"""Checks that must hold around a write: a lock of this process, and a fresh answer of the plane.

A guard is data in an intent; here it is asked. It only reads. A refusal is an answer, not an error:
the world is not as the plan assumed, and the next look will tell. The locks serialise workers of
this process alone; against other processes the server's own preconditions hold.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import TypeAlias, assert_never

from compute_operator_kit.errors import UnavailableError
from compute_operator_kit.intents import Guard, IfGone, IfNone, IfUnchanged, OnlyUnder
from compute_operator_kit.keys import ObjectKey, PlaneName
from compute_operator_kit.kube import Kube, Page, Selector
from compute_operator_kit.objects import Absent

FindKube: TypeAlias = Callable[[PlaneName], Kube]


class Locks:
    """Locks by key, kept only while somebody holds or wants one."""

    def __init__(self) -> None:
        self._locks: dict[ObjectKey, tuple[asyncio.Lock, int]] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @contextlib.asynccontextmanager
    async def hold(self, key: ObjectKey | None) -> AsyncGenerator[None]:
        if key is None:
            yield
            return
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = (lock, users - 1)


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
    return f"{guard.key} is being deleted" if found.metadata.is_deleting else None


async def _check_none(guard: IfNone, kube: Kube) -> str | None:
    """Page by page: the first that counts is enough."""
    selector, token = Selector.of_labels(guard.labels), ""
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
