"""A TCP proxy with injected faults: latency, silence, cuts, resets, garbage.

A link is between one client and one server and listens on loopback by default. It forwards bytes
without interpreting them, TLS included, so that a client meets a bad network. It belongs to the
event loop it was opened in and leaves no task behind.

    client ──► link ──► server       cut: the port is closed, open connections are reset
                                     half-open: connections stay, no byte arrives any more
                                     reset: open connections are reset in the middle of a transfer
                                     garbage: the next bytes from the server are replaced
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import TracebackType
from typing import Final, Self

from e2e.harness.processes.ports import LOOPBACK, Ports

CHUNK: Final = 65_536
# Bounds the bytes in flight: a slow link must not buffer megabytes.
IN_FLIGHT: Final = 64
LINGER_NONE: Final = struct.pack("ii", 1, 0)


class LinkState(StrEnum):
    """How the link treats new connections and bytes."""

    OPEN = "open"
    HALF_OPEN = "half-open"
    CUT = "cut"


class ByteFault(StrEnum):
    """A single fault of the next bytes from the server."""

    RESET = "reset"
    GARBAGE = "garbage"


@dataclass(slots=True)
class LinkCounters:
    """Bytes and connections that passed, for tests."""

    connections: int = 0
    to_server: int = 0
    to_client: int = 0


@dataclass(slots=True, eq=False)
class _Connection:
    """Two sockets and the task that connects them."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    task: asyncio.Task[None] | None = None

    def reset(self) -> None:
        """Resets both sides: with SO_LINGER 0 the kernel sends RST instead of FIN."""
        for writer in (self.client, self.server):
            if writer is None:
                continue
            raw: socket.socket | None = writer.get_extra_info("socket")
            if raw is not None and raw.fileno() >= 0:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)
            writer.transport.abort()
        if self.task:
            self.task.cancel()


@dataclass(frozen=True, slots=True)
class _Due:
    """Bytes and the time at which they may arrive; no bytes mean the end of that direction."""

    when: float
    content: bytes


@dataclass(slots=True)
class _Direction:
    """One direction of a connection."""

    source: asyncio.StreamReader
    target: asyncio.StreamWriter
    towards_client: bool
    under_way: asyncio.Queue[_Due] = field(default_factory=lambda: asyncio.Queue(IN_FLIGHT))


class Link:
    """A link to one server; open from `async with` to its end.

    `latency` may be assigned at any time and applies to bytes read afterwards, in each direction.
    """

    def __init__(
        self,
        server: str,
        server_port: int,
        *,
        address: str = LOOPBACK,
        restart: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.address: Final = address
        self.latency = timedelta()
        self.counters = LinkCounters()
        self._server = (server, server_port)
        self._restart = restart
        self._ports = Ports(self.address)
        self._port = 0
        self._flow = LinkState.OPEN
        self._flowing = asyncio.Event()
        self._spoil: ByteFault | None = None
        self._listener: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    @property
    def port(self) -> int:
        return self._port

    @property
    def state(self) -> LinkState:
        return self._flow

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    async def __aenter__(self) -> Self:
        # The port stays reserved while the link is cut, so that the client finds it again.
        self._port = self._ports.reserve()
        await self.heal()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.cut()
        self._ports.close()

    async def heal(self) -> None:
        """Removes all faults; silent connections continue where they stopped."""
        self._flow = LinkState.OPEN
        self._spoil = None
        self._flowing.set()
        await self._listen()

    async def half_open(self) -> None:
        """Keeps and accepts connections, but forwards neither bytes nor their end."""
        self._flow = LinkState.HALF_OPEN
        self._flowing.clear()
        await self._listen()

    async def cut(self) -> None:
        """Resets open connections and refuses new ones."""
        self._flow = LinkState.CUT
        listener, self._listener = self._listener, None
        if listener:
            listener.close()
        await self.reset()

    async def reset(self) -> None:
        """Resets every open connection; new ones are accepted."""
        tasks = [connection.task for connection in self._connections if connection.task]
        for connection in tuple(self._connections):
            connection.reset()
        if tasks:
            await asyncio.wait(tasks)

    def reset_mid_stream(self) -> None:
        """The next connection with bytes from the server forwards half of them and is reset."""
        self._spoil = ByteFault.RESET

    def garble(self) -> None:
        """Replaces the next bytes from the server by garbage of the same length."""
        self._spoil = ByteFault.GARBAGE

    async def restart_server(self) -> None:
        """Restarts the process behind the link; the link is unchanged."""
        if self._restart is None:
            raise RuntimeError("this link knows no process behind it")
        await self._restart()

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(
                self._accept, self.address, self._port, reuse_address=True
            )

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(writer)
        self._connections.add(connection)
        self.counters.connections += 1
        connection.task = asyncio.create_task(self._carry(reader, connection))

    async def _carry(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        try:
            await self._flowing.wait()
            from_server, connection.server = await asyncio.open_connection(*self._server)
            directions = (
                _Direction(reader, connection.server, towards_client=False),
                _Direction(from_server, connection.client, towards_client=True),
            )
            async with asyncio.TaskGroup() as group:
                for direction in directions:
                    group.create_task(self._receive(direction))
                    group.create_task(self._deliver(direction, connection))
        except* OSError:
            # One side is gone: the other is reset, as by a router.
            connection.reset()
        finally:
            self._connections.discard(connection)
            await _close(connection)

    async def _receive(self, way: _Direction) -> None:
        clock = asyncio.get_running_loop().time
        content = b"-"
        while content:
            content = await way.source.read(CHUNK)
            await way.under_way.put(_Due(clock() + self.latency.total_seconds(), content))

    async def _deliver(self, way: _Direction, connection: _Connection) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due = await way.under_way.get()
            await asyncio.sleep(max(0.0, due.when - clock()))
            await self._flowing.wait()
            if not due.content:
                way.target.write_eof()
                return
            await self._pass_on(due.content, way, connection)

    async def _pass_on(self, content: bytes, way: _Direction, connection: _Connection) -> None:
        spoil = self._take_spoil() if way.towards_client else None
        if spoil is ByteFault.GARBAGE:
            content = garbled(content)
        if spoil is ByteFault.RESET:
            content = content[: max(1, len(content) // 2)]
        way.target.write(content)
        await way.target.drain()
        if way.towards_client:
            self.counters.to_client += len(content)
        else:
            self.counters.to_server += len(content)
        if spoil is ByteFault.RESET:
            connection.reset()

    def _take_spoil(self) -> ByteFault | None:
        spoil, self._spoil = self._spoil, None
        return spoil


def garbled(content: bytes) -> bytes:
    """Different bytes at every position, and the same in every run."""
    return bytes(byte ^ 0xA5 for byte in content)


async def _close(connection: _Connection) -> None:
    for writer in (connection.client, connection.server):
        if writer:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
