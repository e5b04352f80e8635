"""The reflector of one kind on one plane: it lists and watches, and keeps the store up to date.

```
        ┌────────────── 410 · versions went back ──────────────┐
        ▼                                                      │
      list ── complete ──► watch ── ended · idle · garbage ──► watch again from the last version
        │ kind not served: empty the store, list again every 30 s
        │ list or cache over its limit: empty the store without changes, list again every 5 min
```

A list replaces the store: objects that it lacks are removed as inferred deletes, so that a deletion
during a broken watch is noticed. A broken stream changes nothing in the store; the next one
continues at its last version. A reflector runs until it is cancelled; no answer of a plane ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Final, assert_never

from compute_operator_kit.cache.lister import Change, ServingState
from compute_operator_kit.cache.store import Store
from compute_operator_kit.client.interface import (
    EVERYTHING,
    PAGE_SIZE,
    Bookmark,
    Expired,
    KubeClient,
    NotServed,
    ObjectDeleted,
    ObjectUpserted,
    Page,
    Selector,
    UndecodableObject,
    WatchEvent,
)
from compute_operator_kit.client.list_bounds import ListBounds
from compute_operator_kit.client.rest import ANSWER_TOO_LARGE, LARGEST_ANSWER
from compute_operator_kit.client.status_errors import KIND_NOT_SERVED
from compute_operator_kit.core import metrics as names
from compute_operator_kit.core.backoff import PLANE_BACKOFF
from compute_operator_kit.core.clock import ZERO, Clock, Random
from compute_operator_kit.core.errors import LimitExceededError, ReconcileError, ThrottledError
from compute_operator_kit.core.json import UndecodableError
from compute_operator_kit.core.keys import Role
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics
from compute_operator_kit.core.objects import parse_version

# runtime.md, row "cache.py, reflector"
WATCH_LASTS: Final = (timedelta(seconds=240), timedelta(seconds=480))
SILENT_FOR: Final = timedelta(seconds=90)  # an API server sends a bookmark about once a minute
# The idle timeout is reset at most this often and may fire that much too early: a timer per event
# costs more than reading the event.
ALARM_RESET_EVERY: Final = timedelta(seconds=1)
ASK_AGAIN: Final = timedelta(seconds=30)
# A list beyond a limit costs as much as a complete one.
LIST_AGAIN: Final = timedelta(minutes=5)
# The page size doubles again below an eighth of the largest response.
SMALL_PAGE: Final = LARGEST_ANSWER // 8
# faults.md D7: a flapping link must not turn into a list every few seconds
LISTS_APART: Final = timedelta(seconds=10)
# A stream that lasted this long counts as healthy, however it ended.
HEALTHY_AFTER: Final = timedelta(seconds=5)

logger = logging.getLogger(__name__)


class _Step(Enum):
    """The next step of the reflector."""

    WATCH = "watch"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class ReflectorDeps:
    """Dependencies and callbacks of a `Reflector`."""

    clock: Clock
    random: Random
    on_change: Callable[[Change], None]  # every change, in order; must not raise or wait
    on_synced: Callable[[], None] = lambda: None  # the store is synced, or the kind is not served
    measures: MetricsPort = field(default_factory=NoMetrics)
    selector: Selector = EVERYTHING


class Reflector:
    """List and watch of one kind on one plane."""

    def __init__(self, kube: KubeClient, role: Role, store: Store, deps: ReflectorDeps) -> None:
        self.store = store
        self.attempted = asyncio.Event()  # the first list has ended or failed
        self._kube = kube
        self._role = role
        self._deps = deps
        self._page_size = PAGE_SIZE
        self._listed_at: timedelta | None = None
        self._failures = 0

    async def run(self, usable: asyncio.Event) -> None:
        """Lists and watches until cancelled; waits while the plane is not `usable`."""
        step = _Step.LIST
        while True:
            await usable.wait()
            try:
                step = await (self._list() if step is _Step.LIST else self._watch())
            except ThrottledError as pause:
                # Also the answer of a server that starts; not counted as a failure.
                await self._sleep(pause.retry_after)
            except LimitExceededError as limit:
                step = _Step.LIST
                await self._drop_after_limit(limit)
            except (ReconcileError, UndecodableError) as error:
                self.attempted.set()
                if isinstance(error, ReconcileError) and error.reason == KIND_NOT_SERVED:
                    step = _Step.LIST  # only a list can answer `NotServed`
                await self._recover(error)

    # listing ---------------------------------------------------------------------------------

    async def _list(self) -> _Step:
        await self._space_lists()
        object_names: set[tuple[str, str]] = set()
        bounds = ListBounds(self.store.plane, self.store.kind)
        version, token, unreadable = "", "", 0
        while True:
            page = await self._page(token)
            if isinstance(page, Expired):
                await self._back_off_from_expired_list()
                return _Step.LIST
            if isinstance(page, NotServed):
                await self._mark_unserved()
                return _Step.LIST
            bounds.count(page, token)
            self._put_page(page, object_names)
            unreadable += page.unreadable
            version = version or page.resource_version
            token = page.continue_token
            if not token:
                break
        if unreadable:
            self._count_undecodable(unreadable)
        self._replace(object_names, version)
        return _Step.WATCH

    async def _space_lists(self) -> None:
        """Waits until `LISTS_APART` after the last list, with jitter: planes with watches that
        expired together must not list together.
        """
        now = self._deps.clock.monotonic()
        if self._listed_at is not None:
            gap = self._listed_at + LISTS_APART - now
            jitter = timedelta(milliseconds=500) * self._deps.random.random()
            await self._deps.clock.sleep(max(ZERO, gap) + jitter)

    async def _page(self, token: str) -> Page | Expired | NotServed:
        """The next page; one that is too large is requested again at once with a lower limit."""
        while True:
            try:
                page = await self._kube.list(
                    self.store.kind,
                    selector=self._deps.selector,
                    limit=self._page_size,
                    continue_token=token,
                )
            except ReconcileError as error:
                if error.reason != ANSWER_TOO_LARGE or self._page_size == 1:
                    raise
                self._page_size = max(1, self._page_size // 4)
                continue
            if isinstance(page, Page) and page.length < SMALL_PAGE:
                self._page_size = min(PAGE_SIZE, self._page_size * 2)
            return page

    def _put_page(self, page: Page, object_names: set[tuple[str, str]]) -> None:
        for item in page.items:
            key = item.snapshot.key
            object_names.add((key.namespace, key.name))
            self._report(self.store.put(item))

    def _replace(self, object_names: set[tuple[str, str]], version: str) -> None:
        now = self._deps.clock.monotonic()
        was_synced, self._listed_at = self.store.is_synced, now
        for change in self.store.replace(object_names, version=parse_version(version), at=now):
            self._report(change)
        self._failures = 0
        self.attempted.set()
        if not was_synced:
            self._deps.on_synced()

    async def _back_off_from_expired_list(self) -> None:
        """Pauses before the list begins again: a server that compacts faster than it is listed
        would be listed in a hot loop.
        """
        self._count_restart("410")
        self.attempted.set()
        self._failures += 1
        await self._sleep(PLANE_BACKOFF.delay(self._failures, self._deps.random.random()))

    async def _mark_unserved(self) -> None:
        was_known = self.store.serving is ServingState.NOT_SERVED
        for change in self.store.mark_unserved():
            self._report(change)
        self.attempted.set()
        self._listed_at = None
        if not was_known:
            logger.info("Waiting for a kind that is not served", extra=self._fields())
            self._deps.on_synced()
        await self._sleep(ASK_AGAIN)

    # watching --------------------------------------------------------------------------------

    async def _watch(self) -> _Step:
        began = self._deps.clock.monotonic()
        shortest, longest = WATCH_LASTS
        lasting = shortest + (longest - shortest) * self._deps.random.random()
        try:
            step = await self._follow(lasting)
        except TimeoutError:
            self._count_restart("idle")
            return _Step.WATCH
        if step is _Step.WATCH:
            # A stream that lasted as long as requested is not counted as a restart: with five
            # hundred planes some end every second, and that must not raise an alert.
            if self._deps.clock.monotonic() - began < lasting - HEALTHY_AFTER:
                self._count_restart("eof")
            await self._back_off_if_short(began)
        return step

    async def _follow(self, lasting: timedelta) -> _Step:
        batches = self._kube.watch(
            self.store.kind,
            resource_version=str(self.store.seen_version),
            lasting=lasting,
            selector=self._deps.selector,
        )
        loop = asyncio.get_running_loop()
        silence = SILENT_FOR.total_seconds()
        reset_at = loop.time()
        async with contextlib.aclosing(batches), asyncio.timeout(silence) as alarm:
            async for batch in batches:
                now = loop.time()
                if now - reset_at >= ALARM_RESET_EVERY.total_seconds():
                    reset_at = now
                    alarm.reschedule(now + silence)
                self._failures = 0
                for event in batch:
                    if self._handle_event(event) is _Step.LIST:
                        return _Step.LIST
        return _Step.WATCH

    def _handle_event(self, event: WatchEvent) -> _Step:
        match event:
            case ObjectUpserted(received):
                version = parse_version(received.snapshot.metadata.resource_version)
                if self._is_older(version):
                    return self._list_after_regression()
                self._report(self.store.put(received))
            case ObjectDeleted(received):
                version = parse_version(received.snapshot.metadata.resource_version)
                if self._is_older(version):
                    return self._list_after_regression()
                key = received.snapshot.key
                self._report(self.store.remove(key.namespace, key.name))
            case Bookmark(text):
                version = parse_version(text)
                if self._is_older(version):
                    return self._list_after_regression()
                if self.store.lacks_bodies:
                    return _Step.LIST
            case UndecodableObject(text):
                version = parse_version(text)
                self._count_undecodable(1)
            case Expired():
                self._count_restart("410")
                return _Step.LIST
            case _:
                assert_never(event)
        self.store.advance_to(version)
        return _Step.WATCH

    def _is_older(self, version: int) -> bool:
        """Whether the version is older than the one reached; 0 is an event without a version."""
        return 0 < version < self.store.seen_version

    def _list_after_regression(self) -> _Step:
        """The versions went back: the plane was restored from a backup, and only a new list shows
        its state.
        """
        logger.warning("Listing again after versions went back", extra=self._fields())
        self._count_restart("error")
        return _Step.LIST

    # recovering ------------------------------------------------------------------------------

    async def _drop_after_limit(self, limit: LimitExceededError) -> None:
        """Empties the store of a kind that exceeds a limit, so that no reconcile decides from half
        of it, and lists again later.
        """
        was_known = self.store.refusal == limit.reason
        self.store.drop(limit.reason)
        self._count_restart("error")
        self.attempted.set()
        self._listed_at = None
        if not was_known:
            fields = {**self._fields(), "reason": limit.reason, "error": str(limit)}
            logger.warning("Giving up a list beyond its limits", extra=fields)
            self._deps.on_synced()
        await self._sleep(LIST_AGAIN)

    async def _recover(self, error: ReconcileError | UndecodableError) -> None:
        is_garbage = isinstance(error, UndecodableError) or error.reason == "Garbled"
        self._count_restart("garbage" if is_garbage else "error")
        self._failures += 1
        # A warning once per outage; the state of the plane is in its metrics.
        level = logging.WARNING if self._failures == 1 else logging.DEBUG
        reason = "Garbled" if isinstance(error, UndecodableError) else error.reason
        logger.log(
            level,
            "Retrying list and watch",
            extra={**self._fields(), "reason": reason, "error": str(error)},
        )
        await self._sleep(PLANE_BACKOFF.delay(self._failures, self._deps.random.random()))

    async def _back_off_if_short(self, began: timedelta) -> None:
        """Backs off after a short stream: a server that ends each stream at once would cause a hot
        loop.
        """
        if self._deps.clock.monotonic() - began < HEALTHY_AFTER:
            self._failures += 1
            await self._sleep(PLANE_BACKOFF.delay(self._failures, self._deps.random.random()))

    async def _sleep(self, nominal: timedelta) -> None:
        jitter = 1.0 + 0.1 * self._deps.random.random()
        await self._deps.clock.sleep(nominal * jitter)

    def _report(self, change: Change | None) -> None:
        if change is not None:
            self._deps.on_change(change)

    def _count_restart(self, code: str) -> None:
        self._deps.measures.count(names.WATCH_RESTARTS, plane=self._role.value, code=code)

    def _count_undecodable(self, how_many: int) -> None:
        logger.warning("Leaving out objects that do not parse", extra=self._fields())
        self._deps.measures.count(
            names.UNREADABLE_OBJECTS, how_many, plane=self._role.value, kind=self.store.kind.kind
        )

    def _fields(self) -> dict[str, str]:
        return {"plane": self.store.plane, "kind": self.store.kind.kind}
