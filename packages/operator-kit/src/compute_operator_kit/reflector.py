"""Keeps one store true to one kind on one plane: list, then watch, for as long as the plane is
engaged.

```
        ┌────────────── 410 · versions went back ──────────────┐
        ▼                                                      │
      list ── complete ──► watch ── ended · idle · garbage ──► watch again from the last version
        │ kind not served: forget everything, ask again every 30 s
        │ more than is taken of one plane: hold nothing, tell of nothing, ask again every 5 min
```

A list replaces: what it no longer has is removed and told as an inferred delete, so that an object
deleted while we were not watching is noticed. A stream that breaks in any way changes nothing in
the store; the next one goes on where this one stopped. The reflector never ends by itself and never
raises for anything a plane does.
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

from compute_operator_kit import measures as names
from compute_operator_kit.answers import KIND_NOT_SERVED
from compute_operator_kit.backoff import PLANE_BACKOFF
from compute_operator_kit.cache import Change, Serving, Store
from compute_operator_kit.clock import ZERO, Clock, Random
from compute_operator_kit.errors import LimitExceededError, ReconcileError, ThrottledError
from compute_operator_kit.exchange import ANSWER_TOO_LARGE, LARGEST_ANSWER
from compute_operator_kit.keys import Role
from compute_operator_kit.kube import (
    EVERYTHING,
    PAGE_SIZE,
    Bookmark,
    Changed,
    Expired,
    Illegible,
    Kube,
    NotServed,
    Page,
    Removed,
    Selector,
    WatchEvent,
)
from compute_operator_kit.list_bounds import ListBounds
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.objects import parse_version
from compute_operator_kit.wire import UndecodableError

# runtime.md, row "cache.py, reflector"
WATCH_LASTS: Final = (timedelta(seconds=240), timedelta(seconds=480))
SILENT_FOR: Final = timedelta(seconds=90)  # an API server sends a bookmark about once a minute
# The alarm is put off at most this often, and so rings that much too early at worst: a timer per
# event costs more than what reads the event's bytes.
HEARD_APART: Final = timedelta(seconds=1)
ASK_AGAIN: Final = timedelta(seconds=30)
# A list that was given up has cost as much as one that is taken: not often.
LIST_AGAIN: Final = timedelta(minutes=5)
# Pages grow again once they are a quarter of what is read of one.
SMALL_PAGE: Final = LARGEST_ANSWER // 8
# faults.md D7: a flapping link must not turn into a list every few seconds
LISTS_APART: Final = timedelta(seconds=10)
# A stream that lived this long was no failure, however it ended.
LIVED: Final = timedelta(seconds=5)

logger = logging.getLogger(__name__)


class _Next(Enum):
    """What a stream's end, or one of its events, asks for."""

    GO_ON = "go on"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a reflector needs of the world around it."""

    clock: Clock
    random: Random
    tell: Callable[[Change], None]  # every change, in order; must not raise or wait
    tell_synced: Callable[[], None] = lambda: None  # synced, or known not to be served
    measures: Measures = field(default_factory=NoMeasures)
    selector: Selector = EVERYTHING


class Reflector:
    """List and watch of one kind."""

    def __init__(self, kube: Kube, role: Role, store: Store, around: Surroundings) -> None:
        self.store = store
        self.attempted = asyncio.Event()  # the first list has ended, well or not
        self._kube = kube
        self._role = role
        self._around = around
        self._page_size = PAGE_SIZE
        self._listed_at: timedelta | None = None
        self._failures = 0

    async def run(self, usable: asyncio.Event) -> None:
        """Never ends but by cancellation; does nothing while the plane is not `usable`."""
        step = _Next.LIST
        while True:
            await usable.wait()
            try:
                step = await (self._list() if step is _Next.LIST else self._watch())
            except ThrottledError as pause:
                # Also how a server answers while it starts: waited out, no failure.
                await self._rest(pause.retry_after)
            except LimitExceededError as limit:
                step = _Next.LIST
                await self._give_up(limit)
            except (ReconcileError, UndecodableError) as error:
                self.attempted.set()
                if isinstance(error, ReconcileError) and error.reason == KIND_NOT_SERVED:
                    step = _Next.LIST  # the watch can only say that it failed; a list says why
                await self._recover(error)

    # listing ---------------------------------------------------------------------------------

    async def _list(self) -> _Next:
        await self._pace()
        places: set[tuple[str, str]] = set()
        bounds = ListBounds(self.store.plane, self.store.kind)
        version, token, unreadable = "", "", 0
        while True:
            page = await self._page(token)
            if isinstance(page, Expired):
                self._restarted("410")
                return _Next.LIST
            if isinstance(page, NotServed):
                await self._withdraw()
                return _Next.LIST
            bounds.count(page, token)
            self._take_page(page, places)
            unreadable += page.unreadable
            version = version or page.resource_version
            token = page.continue_token
            if not token:
                break
        if unreadable:
            self._illegible(unreadable)
        self._complete(places, version)
        return _Next.GO_ON

    async def _pace(self) -> None:
        """Lists of one kind keep their distance, and planes that expired together do not
        list together.
        """
        now = self._around.clock.monotonic()
        if self._listed_at is not None:
            gap = self._listed_at + LISTS_APART - now
            jitter = timedelta(milliseconds=500) * self._around.random.random()
            await self._around.clock.sleep(max(ZERO, gap) + jitter)

    async def _page(self, token: str) -> Page | Expired | NotServed:
        """The next page; one that is too large is asked for again at once, smaller."""
        while True:
            try:
                page = await self._kube.list(
                    self.store.kind,
                    selector=self._around.selector,
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

    def _take_page(self, page: Page, places: set[tuple[str, str]]) -> None:
        for item in page.items:
            key = item.snapshot.key
            places.add((key.namespace, key.name))
            self._tell(self.store.put(item))

    def _complete(self, places: set[tuple[str, str]], version: str) -> None:
        now = self._around.clock.monotonic()
        was_synced, self._listed_at = self.store.is_synced, now
        for change in self.store.complete(places, version=parse_version(version), at=now):
            self._tell(change)
        self._failures = 0
        self.attempted.set()
        if not was_synced:
            self._around.tell_synced()

    async def _withdraw(self) -> None:
        was_known = self.store.serving is Serving.NOT_SERVED
        for change in self.store.withdraw():
            self._tell(change)
        self.attempted.set()
        self._listed_at = None
        if not was_known:
            logger.info("Waiting for a kind that is not served", extra=self._fields())
            self._around.tell_synced()
        await self._rest(ASK_AGAIN)

    # watching --------------------------------------------------------------------------------

    async def _watch(self) -> _Next:
        began = self._around.clock.monotonic()
        shortest, longest = WATCH_LASTS
        lasting = shortest + (longest - shortest) * self._around.random.random()
        try:
            step = await self._follow(lasting)
        except TimeoutError:
            self._restarted("idle")
            return _Next.GO_ON
        if step is _Next.GO_ON:
            # A stream that lived as long as we asked for has not broken: five hundred planes end
            # some every second, and nobody must be called for that.
            if self._around.clock.monotonic() - began < lasting - LIVED:
                self._restarted("eof")
            await self._breathe(began)
        return step

    async def _follow(self, lasting: timedelta) -> _Next:
        batches = self._kube.watch(
            self.store.kind,
            resource_version=str(self.store.seen_version),
            lasting=lasting,
            selector=self._around.selector,
        )
        loop = asyncio.get_running_loop()
        silence = SILENT_FOR.total_seconds()
        heard = loop.time()
        async with contextlib.aclosing(batches), asyncio.timeout(silence) as alarm:
            async for batch in batches:
                now = loop.time()
                if now - heard >= HEARD_APART.total_seconds():
                    heard = now
                    alarm.reschedule(now + silence)
                self._failures = 0
                for event in batch:
                    if self._take_event(event) is _Next.LIST:
                        return _Next.LIST
        return _Next.GO_ON

    def _take_event(self, event: WatchEvent) -> _Next:
        match event:
            case Changed(delivered):
                version = parse_version(delivered.snapshot.metadata.resource_version)
                if self._is_older(version):
                    return self._regressed()
                self._tell(self.store.put(delivered))
            case Removed(delivered):
                version = parse_version(delivered.snapshot.metadata.resource_version)
                if self._is_older(version):
                    return self._regressed()
                key = delivered.snapshot.key
                self._tell(self.store.remove(key.namespace, key.name))
            case Bookmark(text):
                version = parse_version(text)
                if self._is_older(version):
                    return self._regressed()
                if self.store.lacks_bodies:
                    return _Next.LIST
            case Illegible(text):
                version = parse_version(text)
                self._illegible(1)
            case Expired():
                self._restarted("410")
                return _Next.LIST
            case _:
                assert_never(event)
        self.store.reach(version)
        return _Next.GO_ON

    def _is_older(self, version: int) -> bool:
        """Older than what was seen already; an event that tells no version (0) says nothing."""
        return 0 < version < self.store.seen_version

    def _regressed(self) -> _Next:
        """Versions went back: restored from a backup, or out of order. Only a list tells
        the truth.
        """
        logger.warning("Listing again after versions went back", extra=self._fields())
        self._restarted("error")
        return _Next.LIST

    # recovering ------------------------------------------------------------------------------

    async def _give_up(self, limit: LimitExceededError) -> None:
        """The plane has more than is taken of one: nothing of the kind is held, so that nothing is
        concluded from half of it, and it is asked again later.
        """
        was_known = self.store.refusal == limit.reason
        self.store.drop(limit.reason)
        self._restarted("error")
        self.attempted.set()
        self._listed_at = None
        if not was_known:
            fields = {**self._fields(), "reason": limit.reason, "error": str(limit)}
            logger.warning("Giving up a list beyond its limits", extra=fields)
            self._around.tell_synced()
        await self._rest(LIST_AGAIN)

    async def _recover(self, error: ReconcileError | UndecodableError) -> None:
        is_garbage = isinstance(error, UndecodableError) or error.reason == "Garbled"
        self._restarted("garbage" if is_garbage else "error")
        self._failures += 1
        # Once per outage: the plane's own state tells the rest of the story.
        level = logging.WARNING if self._failures == 1 else logging.DEBUG
        reason = "Garbled" if isinstance(error, UndecodableError) else error.reason
        logger.log(
            level,
            "Retrying list and watch",
            extra={**self._fields(), "reason": reason, "error": str(error)},
        )
        await self._rest(PLANE_BACKOFF.delay(self._failures, self._around.random.random()))

    async def _breathe(self, began: timedelta) -> None:
        """A server that ends every stream at once must not be asked in a hot loop."""
        if self._around.clock.monotonic() - began < LIVED:
            self._failures += 1
            await self._rest(PLANE_BACKOFF.delay(self._failures, self._around.random.random()))

    async def _rest(self, nominal: timedelta) -> None:
        jitter = 1.0 + 0.1 * self._around.random.random()
        await self._around.clock.sleep(nominal * jitter)

    def _tell(self, change: Change | None) -> None:
        if change is not None:
            self._around.tell(change)

    def _restarted(self, code: str) -> None:
        self._around.measures.count(names.WATCH_RESTARTS, plane=self._role.value, code=code)

    def _illegible(self, how_many: int) -> None:
        logger.warning("Leaving out objects that do not parse", extra=self._fields())
        self._around.measures.count(
            names.UNREADABLE_OBJECTS, how_many, plane=self._role.value, kind=self.store.kind.kind
        )

    def _fields(self) -> dict[str, str]:
        return {"plane": self.store.plane, "kind": self.store.kind.kind}
