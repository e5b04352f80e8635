"""The supervised thread: starts kopf, starts it again when it ends, stops it, and knows whether it
lives.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import kopf
import uvloop

from compute_operator_kit.backoff import PLANE_BACKOFF
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.kopf_host.admission import AdmissionServer, Webhook
from compute_operator_kit.kopf_host.held import (
    LONG_ENOUGH,
    Login,
    NoMemories,
    build_settings,
    check_registry,
    told_insights,
)
from compute_operator_kit.loop_link import LoopLink
from compute_operator_kit.measures import Measures

ANSWERS_WITHIN: Final = timedelta(seconds=10)  # operations.md 2, /healthz
BEAT: Final = timedelta(seconds=1)
STOP_WITHIN: Final = timedelta(seconds=6)  # part of the 8 s a stop may take
KOPF_STOPS_WITHIN: Final = timedelta(seconds=2)  # for clean-up handlers; then it is cancelled

logger = logging.getLogger(__name__)


def _is_news(record: logging.LogRecord) -> bool:
    """kopf warns at each start that signals are not its business; here that is how it should be."""
    return "OS signals are ignored" not in record.msg


logging.getLogger("kopf._core.reactor.running").addFilter(_is_news)


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """What an operator brings: its handlers, and where they are reached."""

    register: Callable[[kopf.OperatorRegistry], None]
    webhook: Webhook | None = None
    liveness_endpoint: str | None = None  # kopf's own, with the results of `on.probe`


class KopfHost:
    """The supervised thread. `start` and `stop` are called from one loop, everything else runs in
    kopf's.
    """

    def __init__(
        self,
        front_door: FrontDoor,
        credentials: FileCredentials,
        *,
        clock: Clock,
        random: Random,
        measures: Measures,
    ) -> None:
        self._front_door = front_door
        self._login = Login(credentials, clock, random)
        self._clock = clock
        self._random = random
        self._server = (
            AdmissionServer(front_door.webhook, clock, measures) if front_door.webhook else None
        )
        self._thread: threading.Thread | None = None
        self._link: LoopLink | None = None
        self._beat_at = clock.monotonic()
        self._starts = 0
        self._build_registry()  # one that is broken by itself is told before anything starts

    @property
    def starts(self) -> int:
        """How often kopf was started; more than one means that it ended by itself."""
        return self._starts

    def find_unhealthy(self) -> str | None:
        """For `/healthz`: kopf's loop must have answered within 10 s, whatever the home plane
        does.
        """
        silence = self._clock.monotonic() - self._beat_at
        return None if silence < ANSWERS_WITHIN else "event loop of the front door does not answer"

    def find_unready(self) -> str | None:
        """For `/readyz`: the webhook's port must be bound."""
        return None if self._server is None or self._server.is_bound else "port is not bound"

    def start(self) -> None:
        """Starts the thread and returns; whether kopf gets anywhere is for the probes to tell."""
        self._beat_at = self._clock.monotonic()
        self._link = LoopLink()
        self._thread = threading.Thread(
            target=self._run, args=(self._link,), name="kopf", daemon=True
        )
        self._thread.start()

    async def stop(self) -> None:
        """Asks kopf to end and waits for the thread; one that will not end is left to the process's
        exit.
        """
        if self._thread is None or self._link is None:
            return
        self._link.request_stop()
        try:
            async with asyncio.timeout(STOP_WITHIN.total_seconds()):
                await self._link.ended.wait()
        except TimeoutError:
            logger.warning("Leaving front door behind", extra={"reason": "StopTimedOut"})
            return
        self._thread.join()  # its last statement told us, so this takes no time
        self._thread = None

    # In kopf's thread.

    def _run(self, link: LoopLink) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._supervise(link.open))
        finally:
            link.tell_ended()

    async def _supervise(self, open_link: Callable[[], asyncio.Event]) -> None:
        stop = open_link()
        beat = asyncio.create_task(self._beat(), name="beat of the front door")
        attempt = 0
        while not stop.is_set():
            began = self._clock.monotonic()
            failure = await self._run_once(stop)
            if stop.is_set():
                break
            lasted = self._clock.monotonic() - began
            attempt = 1 if lasted >= LONG_ENOUGH else attempt + 1
            delay = PLANE_BACKOFF.delay(attempt, self._random.random())
            keys = {"reason": type(failure).__name__, "delay": str(delay)}
            logger.warning("Restarting front door", exc_info=failure, extra=keys)
            await _wait(stop, delay)
        beat.cancel()

    async def _run_once(self, stop: asyncio.Event) -> BaseException | None:
        """kopf from start to end; what it raises is a value here, because nothing may end with
        it.
        """
        self._starts += 1
        run = asyncio.create_task(self._run_kopf(stop), name="kopf")
        asked = asyncio.create_task(stop.wait(), name="stop of the front door")
        await asyncio.wait({run, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        # Once asked to stop, kopf waits 5 s for whatever still sleeps in its loop; nobody needs
        # that.
        await asyncio.wait(
            {run}, timeout=KOPF_STOPS_WITHIN.total_seconds() if stop.is_set() else None
        )
        run.cancel()
        await asyncio.wait({run})
        return asyncio.CancelledError() if run.cancelled() else run.exception()

    async def _run_kopf(self, stop: asyncio.Event) -> None:
        settings, webhook = build_settings(self._server), self._front_door.webhook
        try:
            await kopf.operator(
                registry=self._build_registry(),
                settings=settings,
                insights=told_insights(webhook.admits if webhook else ()),
                memories=NoMemories(),
                standalone=True,
                clusterwide=True,
                liveness_endpoint=self._front_door.liveness_endpoint,
                stop_flag=stop,
            )
        finally:
            settings.execution.executor.shutdown(wait=False, cancel_futures=True)

    def _build_registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(id="login", registry=registry)(self._login.log_in)
        self._front_door.register(registry)
        check_registry(registry)
        return registry

    async def _beat(self) -> None:
        while True:
            self._beat_at = self._clock.monotonic()
            await asyncio.sleep(BEAT.total_seconds())


async def _wait(event: asyncio.Event, longest: timedelta) -> None:
    try:
        async with asyncio.timeout(longest.total_seconds()):
            await event.wait()
    except TimeoutError:
        pass
