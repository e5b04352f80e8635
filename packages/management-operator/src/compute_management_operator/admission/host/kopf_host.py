"""The thread that runs kopf: started again with back-off when kopf ends, stopped with the process.

kopf cancels every task of its event loop when it ends, so it has a loop of its own; `/healthz`
reports a loop that hangs and `/readyz` a webhook port that is not bound.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeAlias

import aiohttp
import kopf
import uvloop

from compute_management_operator.admission.host.discovery import serve_discovery
from compute_management_operator.admission.host.logs import tame_kopf_logs
from compute_management_operator.admission.host.loop_link import LoopLink
from compute_management_operator.admission.host.server import AdmissionServer, Webhook
from compute_operator_kit.core.backoff import PLANE_BACKOFF
from compute_operator_kit.core.clock import Clock, Random
from compute_operator_kit.core.metrics import MetricsPort

ANSWERS_WITHIN: Final = timedelta(seconds=10)  # operations.md 2, /healthz
BEAT: Final = timedelta(seconds=1)
LONG_ENOUGH: Final = timedelta(minutes=1)  # after a run of this length the back-off starts anew
STOP_WITHIN: Final = timedelta(seconds=6)  # part of the 8 s a stop may take
KOPF_STOPS_WITHIN: Final = timedelta(seconds=2)  # for clean-up handlers; then it is cancelled

logger = logging.getLogger(__name__)

Register: TypeAlias = Callable[[kopf.OperatorRegistry], None]


class KopfHost:
    """The supervised thread. `register` adds the handlers, once per start of kopf."""

    def __init__(
        self,
        register: Register,
        webhook: Webhook,
        *,
        clock: Clock,
        random: Random,
        measures: MetricsPort,
    ) -> None:
        self._register = register
        self._webhook = webhook
        self._clock = clock
        self._random = random
        self._server = AdmissionServer(webhook, clock, measures)
        self._thread: threading.Thread | None = None
        self._link: LoopLink | None = None
        self._beat_at = clock.monotonic()
        self._starts = 0
        register(kopf.OperatorRegistry())  # a handler that kopf refuses fails before any start

    @property
    def starts(self) -> int:
        """How often kopf was started; more than once means that it ended by itself."""
        return self._starts

    def find_unhealthy(self) -> str | None:
        """For `/healthz`: kopf's loop must have run within the last 10 s."""
        silence = self._clock.monotonic() - self._beat_at
        return None if silence < ANSWERS_WITHIN else "event loop of the front door does not answer"

    def find_unready(self) -> str | None:
        """For `/readyz`: the webhook's port must be bound."""
        return None if self._server.is_bound else "port is not bound"

    async def run(self) -> None:
        """Runs kopf until it is cancelled, and waits for the end of the thread then."""
        self.start()
        try:
            await asyncio.Event().wait()
        finally:
            await self.stop()

    def start(self) -> None:
        """Starts the thread and returns; probes report whether kopf serves."""
        self._beat_at = self._clock.monotonic()
        self._link = LoopLink()
        self._thread = threading.Thread(
            target=self._run, args=(self._link,), name="kopf", daemon=True
        )
        self._thread.start()

    async def stop(self) -> None:
        """Ends kopf and waits for the thread; one that does not end dies with the process."""
        if self._thread is None or self._link is None:
            return
        self._link.request_stop()
        try:
            async with asyncio.timeout(STOP_WITHIN.total_seconds()):
                await self._link.ended.wait()
        except TimeoutError:
            logger.warning("Leaving front door behind", extra={"reason": "StopTimedOut"})
            return
        self._thread.join()  # it has run its last statement, so this takes no time
        self._thread = None

    # In kopf's thread.

    def _run(self, link: LoopLink) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._supervise(link.open))
        finally:
            link.set_ended()

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
        """kopf from start to end, and the exception with which it ended."""
        self._starts += 1
        run = asyncio.create_task(self._run_kopf(stop), name="kopf")
        asked = asyncio.create_task(stop.wait(), name="stop of the front door")
        await asyncio.wait({run, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        # When it is stopped, kopf waits 5 s for every task that still sleeps in its loop.
        await asyncio.wait(
            {run}, timeout=KOPF_STOPS_WITHIN.total_seconds() if stop.is_set() else None
        )
        run.cancel()
        await asyncio.wait({run})
        return asyncio.CancelledError() if run.cancelled() else run.exception()

    async def _run_kopf(self, stop: asyncio.Event) -> None:
        tame_kopf_logs()
        settings = build_settings(self._server)
        registry = kopf.OperatorRegistry()
        async with serve_discovery(self._webhook.admits) as url, aiohttp.ClientSession() as session:

            async def log_in(**_: object) -> kopf.AiohttpSession:
                return kopf.AiohttpSession(server=url, aiohttp_session=session)

            kopf.on.login(id="login", registry=registry)(log_in)
            self._register(registry)
            try:
                await kopf.operator(
                    registry=registry,
                    settings=settings,
                    standalone=True,
                    clusterwide=True,
                    stop_flag=stop,
                )
            finally:
                settings.execution.executor.shutdown(wait=False, cancel_futures=True)

    async def _beat(self) -> None:
        while True:
            self._beat_at = self._clock.monotonic()
            await asyncio.sleep(BEAT.total_seconds())


def build_settings(server: kopf.WebhookServerProtocol) -> kopf.OperatorSettings:
    """kopf's settings, pinned; the reasons are in the package's docstring."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.process.ultimate_exiting_timeout = None
    settings.admission.managed = None
    settings.admission.server = server
    return settings


async def _wait(event: asyncio.Event, longest: timedelta) -> None:
    try:
        async with asyncio.timeout(longest.total_seconds()):
            await event.wait()
    except TimeoutError:
        pass
