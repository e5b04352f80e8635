"""Watches: what happened since a version, then what happens, one JSON object per line."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING

import httpx

from compute_quota_client._fake.refusals import expired
from compute_quota_client._override import override

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from pydantic import JsonValue

    from compute_quota_client._fake.knobs import Knobs
    from compute_quota_client._fake.objects import Object
    from compute_quota_client._fake.routes import Route
    from compute_quota_client._fake.store import Change, Store


def matches(selector: str, found: Object | None) -> bool:
    """Whether an object exists and its labels match: `key=value`, `key!=value`, `key`, `!key`."""
    if found is None:
        return False
    labels = found.metadata.labels or {}
    return all(_term(term.strip(), labels) for term in selector.split(",") if term.strip())


def _term(term: str, labels: dict[str, str]) -> bool:
    if "!=" in term:
        key, _, value = term.partition("!=")
        return labels.get(key) != value
    if "=" in term:
        key, _, value = term.partition("=")
        return labels.get(key) == value.removeprefix("=")
    return term[1:] not in labels if term.startswith("!") else term in labels


class WatchStream(httpx.AsyncByteStream):
    """One open watch; ends with its time, when dropped, or when nobody reads it."""

    def __init__(
        self,
        store: Store,
        knobs: Knobs,
        asked: Route,
        request: httpx.Request,
        left: Callable[[WatchStream], None],
    ) -> None:
        params = request.url.params
        self._left = left
        self._store = store
        self._knobs = knobs
        self._asked = asked
        self._selector = params.get("labelSelector", "")
        self._bookmarks = params.get("allowWatchBookmarks") == "true"
        self._seconds = float(params.get("timeoutSeconds", "3600"))
        self._since = int(params.get("resourceVersion") or store.version)
        self._said: deque[bytes] = deque()
        self._called = asyncio.Event()
        self._open = True

    def say(self, line: bytes) -> None:
        """Puts a line of the test's own into the stream."""
        self._said.append(line + b"\n")
        self._called.set()

    def drop(self) -> None:
        """Breaks the connection."""
        self._open = False
        self._called.set()

    def tell_expired(self) -> None:
        """Ends the watch in the middle: its version is forgotten."""
        self.say(_line("ERROR", expired().body))
        self._since = self._store.version

    @override
    async def aclose(self) -> None:
        """Nobody reads any more."""
        self.drop()
        self._left(self)

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._seconds
        bookmark_at = loop.time() + self._knobs.bookmark_every.total_seconds()
        while self._open and loop.time() < ends:
            for line in self._new_lines():
                yield line
            if self._bookmarks and loop.time() >= bookmark_at:
                bookmark_at = loop.time() + self._knobs.bookmark_every.total_seconds()
                if not self._knobs.silent_watches:
                    yield self._bookmark()
            await self._wait(min(ends, bookmark_at) - loop.time())
        if not self._open:
            raise httpx.ReadError("the connection was reset")

    def _new_lines(self) -> Iterator[bytes]:
        self._called.clear()
        while self._said:
            yield self._said.popleft()
        if self._knobs.silent_watches:
            return
        for change in [found for found in self._store.history if found.version > self._since]:
            self._since = change.version
            event = self._event(change)
            if event is not None:
                yield event

    def _event(self, change: Change) -> bytes | None:
        where, asked = change.where, self._asked
        if (where.plane, where.resource) != (asked.plane, asked.resource):
            return None
        if asked.namespace not in {None, where.namespace}:
            return None
        was, matched = matches(self._selector, change.before), matches(self._selector, change.after)
        if change.after is not None and matched:
            return _line("MODIFIED" if was else "ADDED", change.after.render())
        if change.before is not None and was:
            # A deletion, as far as this selector goes: it carries the version of the change.
            gone = (change.after or change.before).model_copy(deep=True)
            gone.metadata.resource_version = str(change.version)
            return _line("DELETED", gone.render())
        return None

    def _bookmark(self) -> bytes:
        version = str(max(self._since, self._store.version))
        self._since = self._store.version
        kind = "ResourceClaim" if self._asked.resource == "resourceclaims" else "Object"
        return _line("BOOKMARK", {"kind": kind, "metadata": {"resourceVersion": version}})

    async def _wait(self, seconds: float) -> None:
        changed = asyncio.ensure_future(self._store.wait_for_change())
        called = asyncio.ensure_future(self._called.wait())
        try:
            await asyncio.wait(
                {changed, called}, timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            changed.cancel()
            called.cancel()
            # Not awaited one by one: who is cancelled here would take that for their end.
            await asyncio.wait({changed, called})


def _line(kind: str, body: JsonValue) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"
