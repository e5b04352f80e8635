"""Watches: changes since a version, then new ones, one JSON object per line."""

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

    from compute_quota_client._fake.objects import Object
    from compute_quota_client._fake.options import Knobs
    from compute_quota_client._fake.routes import Route
    from compute_quota_client._fake.store import Change, Store


def matches(selector: str, existing: Object | None) -> bool:
    """Whether an object exists and its labels match: `key=value`, `key!=value`, `key`, `!key`."""
    if existing is None:
        return False
    labels = existing.metadata.labels or {}
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
    """One open watch; ends after its timeout, when dropped, or when its reader closes it."""

    def __init__(
        self,
        store: Store,
        options: Knobs,
        asked: Route,
        request: httpx.Request,
        left: Callable[[WatchStream], None],
    ) -> None:
        params = request.url.params
        self._left = left
        self._store = store
        self._options = options
        self._asked = asked
        self._selector = params.get("labelSelector", "")
        self._bookmarks = params.get("allowWatchBookmarks") == "true"
        self._seconds = float(params.get("timeoutSeconds", "3600"))
        self._since = int(params.get("resourceVersion") or store.version)
        self._lines: deque[bytes] = deque()
        self._called = asyncio.Event()
        self._open = True

    def send_line(self, line: bytes) -> None:
        """Sends a line of the test in the stream."""
        self._lines.append(line + b"\n")
        self._called.set()

    def drop(self) -> None:
        """Breaks the connection."""
        self._open = False
        self._called.set()

    def send_expired(self) -> None:
        """Sends the error of an expired version, which ends the watch."""
        self.send_line(_line("ERROR", expired().body))
        self._since = self._store.version

    @override
    async def aclose(self) -> None:
        """Closed by its reader."""
        self.drop()
        self._left(self)

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._seconds
        bookmark_at = loop.time() + self._options.bookmark_every.total_seconds()
        while self._open and loop.time() < ends:
            for line in self._new_lines():
                yield line
            if self._bookmarks and loop.time() >= bookmark_at:
                bookmark_at = loop.time() + self._options.bookmark_every.total_seconds()
                if not self._options.silent_watches:
                    yield self._bookmark()
            await self._wait(min(ends, bookmark_at) - loop.time())
        if not self._open:
            raise httpx.ReadError("the connection was reset")

    def _new_lines(self) -> Iterator[bytes]:
        self._called.clear()
        while self._lines:
            yield self._lines.popleft()
        if self._options.silent_watches:
            return
        for change in [entry for entry in self._store.history if entry.version > self._since]:
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
            # A deletion for this selector, with the version of the change.
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
            # Not awaited singly: a cancellation of this coroutine would look like that of a task.
            await asyncio.wait({changed, called})


def _line(kind: str, body: JsonValue) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"
