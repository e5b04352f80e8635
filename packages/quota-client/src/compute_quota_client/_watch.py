"""List and watch of the claims of a project, restarted after every failure.

    list ──▶ Changed … Synced ──▶ watch ──▶ Changed, Gone …
      ▲                            │  ▲ │
      │                            │  └─┘ end, broken, silent or undecodable: watch again
      └──── 410, versions go back ─┘      from the last version
        Gone for what vanished, Changed for what differs, Synced

The last reported claims are kept: after a second list only differences are reported, so that no
deletion is missed and no state is reported twice.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import httpx

from compute_quota_client._clock import loop_now
from compute_quota_client._exceptions import Operation, QuotaError, QuotaUnavailableError
from compute_quota_client._exchange import Call
from compute_quota_client._retry import Chance, spread_delay
from compute_quota_client._stream import (
    Bookmark,
    GarbageLineError,
    LineSplitter,
    Put,
    Removed,
    StreamError,
    parse_line,
)
from compute_quota_client._verdicts import Changed, Gone, Synced, WatchEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from compute_quota_client._models import FoundClaim
    from compute_quota_client._requests import Listing, PlaneRequests
    from compute_quota_client._stream import Line
    from compute_quota_client._verdicts import ClaimKey

# A server sends a bookmark about every minute; a stream that is silent for longer is dead.
SILENCE_LIMIT: Final = timedelta(seconds=90)
# The server ends a watch after this many seconds, spread so that a thousand watches do not
# reconnect together.
SHORTEST_WATCH: Final = 240
LONGEST_WATCH: Final = 480
# A watch that ends sooner than this did not reach its timeout. After so many of them, or of
# failures, in a row, the claims are listed again: the start version may be the cause.
SHORT_LIVED: Final = timedelta(seconds=5)
FRUITLESS_LIMIT: Final = 3
# Digits of the largest resourceVersion, an unsigned number of 64 bits.
LONGEST_VERSION: Final = 20

_log = logging.getLogger(__name__)


class ClaimWatch:
    """One watch of one selector. `is_live`: whether the reported claims are current now."""

    def __init__(self, requests: PlaneRequests, selector: str, chance: Chance) -> None:
        self._requests = requests
        self._selector = selector
        self._chance = chance
        self._known: dict[ClaimKey, FoundClaim] = {}
        self._version = ""
        self._fruitless = 0
        self._patience: asyncio.Timeout | None = None
        self._ended = False
        self.is_live = False

    def end(self) -> None:
        """Ends the watch; a caller that waits for its next event gets none."""
        self._ended = True
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        """All claims, then changes, until the generator is closed.

        Raises:
            QuotaError: an error that a retry does not solve.
        """
        try:
            while not self._ended:
                listing = await self._list()
                if listing is None:
                    continue
                for event in self._differences(listing):
                    yield event
                self.is_live = True
                yield Synced()
                async with aclosing(self._follow()) as followed:
                    async for event in followed:
                        yield event
        finally:
            self.is_live = False

    async def _list(self) -> Listing | None:
        """All claims now, or None, after a pause, where the plane is unavailable."""
        try:
            return await self._requests.list(self._selector)
        except QuotaUnavailableError as error:
            await self._pause(error)
            return None

    def _differences(self, listing: Listing) -> Iterator[WatchEvent]:
        """Differences from the last report: deletions first, since a new claim may have the same
        name.
        """
        listed = {claim.key: claim for claim in listing.claims}
        for key in [key for key in self._known if key not in listed]:
            yield Gone(self._known.pop(key))
        for key, claim in listed.items():
            known = self._known.get(key)
            if known is None or known.resource_version != claim.resource_version:
                self._known[key] = claim
                yield Changed(claim)
        self._version = listing.resource_version
        self._fruitless = 0

    async def _follow(self) -> AsyncGenerator[WatchEvent, None]:
        """Changes from the last version on; ends when another list is needed."""
        while not self._ended and self._fruitless < FRUITLESS_LIMIT:
            begun = loop_now()
            try:
                async with aclosing(self._stream()) as lines:
                    async for line in lines:
                        if await self._needs_list(line):
                            return
                        if isinstance(line, StreamError):
                            break
                        event = self._take(line)
                        if event is not None:
                            yield event
            except QuotaError as error:
                if error.status == 410:
                    return
                if not isinstance(error, QuotaUnavailableError):
                    raise
                await self._pause(error)
            else:
                await self._rest(begun)

    async def _rest(self, begun: timedelta) -> None:
        """Waits after a stream that ended at once, so that reopening it is no busy loop."""
        if loop_now() - begun < SHORT_LIVED:
            self._fruitless += 1
            await self._sleep(spread_delay(0, self._chance))

    async def _pause(self, error: QuotaError) -> None:
        """Waits for an unavailable plane, longer every time, up to 36 s."""
        self.is_live = False
        _log.debug("Pausing a watch", extra={"reason": type(error).__name__})
        delay = spread_delay(self._fruitless, self._chance)
        self._fruitless += 1
        await self._sleep(delay)

    async def _sleep(self, delay: timedelta) -> None:
        with suppress(TimeoutError):
            async with self._waiting(delay):
                # Never done: only the timeout, or `end`, ends the wait.
                await asyncio.get_running_loop().create_future()

    @asynccontextmanager
    async def _waiting(self, limit: timedelta) -> AsyncGenerator[None, None]:
        """A wait that `end` cuts short."""
        async with asyncio.timeout(0 if self._ended else limit.total_seconds()) as patience:
            self._patience = patience
            try:
                yield
            finally:
                self._patience = None

    async def _needs_list(self, line: Line) -> bool:
        """Whether another list is needed: the server's history does not reach back to the version,
        or versions went back, out of order or because the plane was restored from a backup.
        """
        match line:
            case StreamError(code=code):
                return code == 410
            case Bookmark(resource_version=version):
                pass
            case Put(claim=claim) | Removed(claim=claim):
                version = claim.resource_version
        is_older = 0 < _read_version(version) < _read_version(self._version)
        if is_older:
            _log.warning("Listing claims again after versions went back")
            # A server that repeats this must not be listed in a busy loop.
            await self._sleep(spread_delay(0, self._chance))
        return is_older

    def _take(self, line: Put | Removed | Bookmark) -> WatchEvent | None:
        match line:
            case Bookmark(resource_version=version):
                self._version = version
                return None
            case Put(claim=claim):
                self._version = claim.resource_version
                known = self._known.get(claim.key)
                self._known[claim.key] = claim
                is_changed = known is None or known.resource_version != claim.resource_version
                return Changed(claim) if is_changed else None
            case Removed(claim=claim):
                self._version = claim.resource_version
                known = self._known.pop(claim.key, None)
                return None if known is None else Gone(claim)

    async def _stream(self) -> AsyncGenerator[Line, None]:
        """The events of one watch request; silence and undecodable lines end it without error."""
        async with self._requests.sender.open_stream(self._call()) as response:
            self.is_live = True
            splitter = LineSplitter()
            chunks = response.aiter_bytes()
            while True:
                try:
                    chunk = await self._next(chunks)
                    if chunk is None:
                        return
                    for line in splitter.feed(chunk):
                        yield parse_line(line)
                except (
                    GarbageLineError,
                    TimeoutError,
                    httpx.TransportError,
                    httpx.StreamError,
                ) as error:
                    _log.debug("Reopening a watch", extra={"reason": type(error).__name__})
                    return

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        async with self._waiting(SILENCE_LIMIT):
            return await anext(chunks, None)

    def _call(self) -> Call:
        seconds = SHORTEST_WATCH + int((LONGEST_WATCH - SHORTEST_WATCH + 1) * self._chance())
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(min(seconds, LONGEST_WATCH)),
        }
        if self._selector:
            params["labelSelector"] = self._selector
        return Call(
            self._requests.attempt(Operation.WATCH),
            "GET",
            self._requests.urls.claims(),
            params,
            silence_limit=SILENCE_LIMIT,
        )


def _read_version(text: str) -> int:
    """A resourceVersion as a number, which Kubernetes lets clients compare; 0 where it is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= LONGEST_VERSION
    return int(text) if is_number else 0
