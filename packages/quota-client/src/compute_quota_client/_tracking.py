"""The watches of one client: those that trackers share, at most 64 at once, and those that callers
iterate themselves.

A tracker's watch starts with its first follower and stops some time after the last has left, so
that a project without pending claims costs no connection. While 64 run, a further tracker waits and
its followers poll.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from compute_quota_client._exceptions import QuotaError
from compute_quota_client._judge import judge
from compute_quota_client._verdicts import Changed, ClaimKey, Gone, Synced, Verdict
from compute_quota_client._watch import ClaimWatch

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from compute_quota_client._dependencies import ClientDependencies
    from compute_quota_client._requests import PlaneRequests
    from compute_quota_client._verdicts import WatchEvent

    Wake: TypeAlias = Callable[[ClaimKey], None]

MAX_RUNNING: Final = 64
TRY_AGAIN_DEGRADED: Final = timedelta(minutes=5)

_log = logging.getLogger(__name__)


class SharedWatch:
    """The verdicts on all claims of one project and selector, and the followers to notify."""

    def __init__(self, watches: Watches, requests: PlaneRequests, selector: str) -> None:
        self._watches = watches
        self._watch = ClaimWatch(requests, selector, watches.chance)
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.TimerHandle | None = None
        self._followers: dict[object, Wake] = {}
        self._complete = False
        self.key = (requests.project, selector)
        self.verdicts: dict[ClaimKey, Verdict] = {}
        self.trouble: QuotaError | None = None

    @property
    def is_running(self) -> bool:
        """Whether it is one of the 64 that run."""
        return self._task is not None

    @property
    def is_synced(self) -> bool:
        """Whether `verdicts` is complete and current now."""
        return self._complete and self._watch.is_live

    def add(self, follower: object, wake: Wake) -> None:
        """Adds a follower, which is notified by `wake`."""
        self._followers[follower] = wake
        if self._stopping is not None:
            self._stopping.cancel()
            self._stopping = None

    def remove(self, follower: object, idle_ttl: timedelta) -> None:
        """Removes a follower; the watch stops `idle_ttl` after the last."""
        if self._followers.pop(follower, None) is None or self._followers:
            return
        if self.is_running:
            loop = asyncio.get_running_loop()
            delay = idle_ttl.total_seconds()
            self._stopping = loop.call_later(delay, self._watches.stop, self)
        else:
            # It does not run yet: there is no watch to keep.
            self._watches.stop(self)

    def start(self) -> None:
        """Starts the watch in a task of its own."""
        project, selector = self.key
        self._task = asyncio.create_task(self._run(), name=f"quota watch {project} {selector}")

    def cancel(self) -> asyncio.Task[None] | None:
        """Cancels the watch; returns the task that has not ended yet, if there is one."""
        if self._stopping is not None:
            self._stopping.cancel()
        if self._task is not None:
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        while True:
            try:
                async with aclosing(self._watch.events()) as events:
                    async for event in events:
                        self._take(event)
            except QuotaError as error:
                # No rights, or no such project, which a retry does not solve: tried again rarely,
                # and followers poll.
                self.trouble = error
                _log.warning("Tracking is degraded", extra={"reason": type(error).__name__})
            await asyncio.sleep(TRY_AGAIN_DEGRADED.total_seconds())

    def _take(self, event: WatchEvent) -> None:
        match event:
            case Synced():
                self._complete, self.trouble = True, None
            case Changed(found=claim):
                self.verdicts[claim.key] = judge(claim)
                self._wake(claim.key)
            case Gone(found=claim):
                self.verdicts.pop(claim.key, None)
                self._wake(claim.key)

    def _wake(self, key: ClaimKey) -> None:
        loop = asyncio.get_running_loop()
        for wake in self._followers.values():
            # Not called from here: an exception of a callback would end the watch of all followers.
            loop.call_soon(wake, key)


class Watches:
    """All watches of one client."""

    def __init__(self, dependencies: ClientDependencies) -> None:
        self.chance = dependencies.chance
        self._telemetry = dependencies.telemetry
        self._running: dict[tuple[str, str], SharedWatch] = {}
        # In the order of arrival: the first one runs next.
        self._waiting: dict[tuple[str, str], SharedWatch] = {}
        self._iterated: set[ClaimWatch] = set()
        self._ending: set[asyncio.Task[None]] = set()

    def find(self, project: str, selector: str) -> SharedWatch | None:
        """The shared watch, if there is one."""
        key = (project, selector)
        return self._running.get(key) or self._waiting.get(key)

    def share(self, requests: PlaneRequests, selector: str) -> SharedWatch:
        """The shared watch, made if there is none and started if fewer than 64 run."""
        shared = self.find(requests.project, selector)
        if shared is None:
            shared = SharedWatch(self, requests, selector)
            self._waiting[shared.key] = shared
            self._fill_places()
        return shared

    def stop(self, shared: SharedWatch) -> None:
        """Stops a shared watch and starts the one that waits longest."""
        for shelf in (self._waiting, self._running):
            if shelf.get(shared.key) is shared:
                del shelf[shared.key]
        task = shared.cancel()
        if task is not None:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            self._fill_places()

    async def follow(self, watch: ClaimWatch) -> AsyncGenerator[WatchEvent, None]:
        """The events of a watch that its caller iterates; it ends with the client."""
        self._iterated.add(watch)
        try:
            async with aclosing(watch.events()) as events:
                async for event in events:
                    yield event
        finally:
            self._iterated.discard(watch)

    async def aclose(self) -> None:
        """Ends all watches and waits until their tasks have ended."""
        for watch in self._iterated:
            watch.end()
        self._waiting.clear()
        for shared in list(self._running.values()):
            self.stop(shared)
        if self._ending:
            await asyncio.wait(set(self._ending))

    def _fill_places(self) -> None:
        while self._waiting and len(self._running) < MAX_RUNNING:
            key = next(iter(self._waiting))
            self._running[key] = self._waiting.pop(key)
            self._running[key].start()
        self._telemetry.watches_running(len(self._running))
