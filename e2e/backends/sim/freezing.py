"""A process that can be stopped in its tracks and go on later, as by SIGSTOP and SIGCONT.

Under one event loop a process stands still when nothing it waits for comes back: neither the end of
a sleep nor an answer nor a line of a watch. What it would do between two of them it does before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta

from compute_operator_kit.clock import Clock
from compute_sim_planes.api_server.transport import Answer, Transport


class Gate:
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

    async def passes(self) -> None:
        await self._open.wait()


class GatedClock:
    """The world's clock for one process: time goes on while it stands, its sleeps end after."""

    def __init__(self, clock: Clock, gate: Gate) -> None:
        self._clock = clock
        self._gate = gate

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> timedelta:
        return self._clock.monotonic()

    async def sleep(self, delay: timedelta) -> None:
        await self._clock.sleep(delay)
        await self._gate.passes()


class GatedTransport:
    """A transport of that process: nothing leaves it and nothing reaches it while it stands."""

    def __init__(self, inner: Transport, gate: Gate) -> None:
        self._inner = inner
        self._gate = gate

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        await self._gate.passes()
        answer = await self._inner.request(method, target, headers, body)
        try:
            await self._gate.passes()
        except BaseException:
            await answer.close()
            raise
        return _GatedAnswer(answer, self._gate)


class _GatedAnswer:
    def __init__(self, inner: Answer, gate: Gate) -> None:
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
                await self._gate.passes()
                yield chunk
        finally:
            await _close_iterator(chunks)

    async def close(self) -> None:
        await self._inner.close()


async def _close_iterator(chunks: AsyncIterator[bytes]) -> None:
    """A generator left to the collector would end at a moment of its own."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
