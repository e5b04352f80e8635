"""Freezes one simulated process and resumes it later, as SIGSTOP and SIGCONT do.

All processes share one event loop, so a frozen one is held at its await points: sleeps, responses
and watch lines do not return to it. Code between two awaits still runs to the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta

from typing_extensions import override

from compute_operator_kit.core.clock import Clock
from compute_sim_planes.api_server.http.transport import Response, Transport


class FreezeGate:
    """Open while the process runs."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    def freeze(self) -> None:
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    async def wait_until_thawed(self) -> None:
        await self._open.wait()


class GatedClock:
    """The virtual clock for one process: time passes while it is frozen, its sleeps end later."""

    def __init__(self, clock: Clock, gate: FreezeGate) -> None:
        self._clock = clock
        self._gate = gate

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> timedelta:
        return self._clock.monotonic()

    async def sleep(self, delay: timedelta) -> None:
        await self._clock.sleep(delay)
        await self._gate.wait_until_thawed()


class ElectionClock(GatedClock):
    """The clock of a process's election, which may renew its Lease less often.

    A renewal is most of what a process at rest costs. Three times the pause is still shorter than
    the deadline of a renewal.
    """

    stretch = 1

    @override
    async def sleep(self, delay: timedelta) -> None:
        await super().sleep(delay * self.stretch)


class GatedTransport:
    """A transport that holds requests and responses while the process is frozen."""

    def __init__(self, inner: Transport, gate: FreezeGate) -> None:
        self._inner = inner
        self._gate = gate

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        await self._gate.wait_until_thawed()
        answer = await self._inner.request(method, target, headers, body)
        try:
            await self._gate.wait_until_thawed()
        except BaseException:
            await answer.close()
            raise
        return _GatedAnswer(answer, self._gate)


class _GatedAnswer:
    def __init__(self, inner: Response, gate: FreezeGate) -> None:
        self._inner = inner
        self._gate = gate

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        chunks = self._inner.chunks()
        try:
            async for chunk in chunks:
                await self._gate.wait_until_thawed()
                yield chunk
        finally:
            await _close_iterator(chunks)

    async def close(self) -> None:
        await self._inner.close()


async def _close_iterator(chunks: AsyncIterator[bytes]) -> None:
    """Closes the generator now; the garbage collector would end it at an unpredictable time."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
