"""A TCP connection that a test can spoil: latency, silence, cuts, resets, garbage.

One link stands between one client and one server; it listens on loopback unless told otherwise. It
passes bytes on and knows nothing of what they mean: TLS goes through it untouched, so a client sees
what a bad network would show it. It belongs to the event loop it was opened in and leaves no task
behind.

    client ──► link ──► server       cut: nobody listens, open connections are reset
                                     half-open: connections stay, no byte arrives any more
                                     reset: open connections end in the middle of what they carry
                                     garbage: the next bytes from the server are not what it sent
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

from e2e.planes.ports import LOOPBACK, Ports

CHUNK: Final = 65_536
# So much is under way at most: a slow link must not turn into a store of megabytes.
IN_FLIGHT: Final = 64
LINGER_NONE: Final = struct.pack("ii", 1, 0)


class Flow(StrEnum):
    """What the link does with new connections and with bytes."""

    OPEN = "open"
    HALF_OPEN = "half-open"
    CUT = "cut"


class Spoil(StrEnum):
    """What happens, once, to the next bytes from the server."""

    RESET = "reset"
    GARBAGE = "garbage"


@dataclass(slots=True)
class Seen:
    """What went through, for a test to look at."""

    connections: int = 0
    to_server: int = 0
    to_client: int = 0


@dataclass(slots=True, eq=False)
class _Connection:
    """Two sockets and the task that joins them."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    task: asyncio.Task[None] | None = None

    def reset(self) -> None:
        """Ends both sides with RST: without lingering, the kernel sends no orderly end."""
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
    """Bytes and the moment they may arrive; no bytes is the end of that direction."""

    when: float
    content: bytes


@dataclass(slots=True)
class _Direction:
    """One way through a connection."""

    source: asyncio.StreamReader
    target: asyncio.StreamWriter
    towards_client: bool
    under_way: asyncio.Queue[_Due] = field(default_factory=lambda: asyncio.Queue(IN_FLIGHT))


class Link:
    """A link to one server; open from `async with` to its end.

    `latency` may be assigned at any time and holds for what is read from then on, each way.
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
        self.seen = Seen()
        self._server = (server, server_port)
        self._restart = restart
        self._ports = Ports(self.address)
        self._port = 0
        self._flow = Flow.OPEN
        self._flowing = asyncio.Event()
        self._spoil: Spoil | None = None
        self._listener: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    @property
    def port(self) -> int:
        return self._port

    @property
    def flow(self) -> Flow:
        return self._flow

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    async def __aenter__(self) -> Self:
        # The link keeps its port while it is cut: a client must find it again at the same place.
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
        """Everything passes again; connections that were only silent go on where they stopped."""
        self._flow = Flow.OPEN
        self._spoil = None
        self._flowing.set()
        await self._listen()

    async def half_open(self) -> None:
        """Silence: connections stay and new ones are taken, but no byte and no end arrives."""
        self._flow = Flow.HALF_OPEN
        self._flowing.clear()
        await self._listen()

    async def cut(self) -> None:
        """Open connections are reset and new ones refused."""
        self._flow = Flow.CUT
        listener, self._listener = self._listener, None
        if listener:
            listener.close()
        await self.reset()

    async def reset(self) -> None:
        """Ends every open connection with a reset; new ones are taken as before."""
        tasks = [connection.task for connection in self._connections if connection.task]
        for connection in tuple(self._connections):
            connection.reset()
        if tasks:
            await asyncio.wait(tasks)

    def reset_mid_stream(self) -> None:
        """The connection that next brings bytes from the server gets half of them and a reset."""
        self._spoil = Spoil.RESET

    def garble(self) -> None:
        """The next bytes from the server arrive as garbage of the same length."""
        self._spoil = Spoil.GARBAGE

    async def restart_server(self) -> None:
        """Restarts the process behind the link; the link itself stays as it is."""
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
        self.seen.connections += 1
        connection.task = asyncio.create_task(self._carry(reader, connection))

    async def _carry(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        try:
            await self._flowing.wait()
            from_server, connection.server = await asyncio.open_connection(*self._server)
            ways = (
                _Direction(reader, connection.server, towards_client=False),
                _Direction(from_server, connection.client, towards_client=True),
            )
            async with asyncio.TaskGroup() as group:
                for way in ways:
                    group.create_task(self._receive(way))
                    group.create_task(self._deliver(way, connection))
        except* OSError:
            # One side is gone: the other learns it the hard way, as from a router in between.
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
        if spoil is Spoil.GARBAGE:
            content = garbled(content)
        if spoil is Spoil.RESET:
            content = content[: max(1, len(content) // 2)]
        way.target.write(content)
        await way.target.drain()
        if way.towards_client:
            self.seen.to_client += len(content)
        else:
            self.seen.to_server += len(content)
        if spoil is Spoil.RESET:
            connection.reset()

    def _take_spoil(self) -> Spoil | None:
        spoil, self._spoil = self._spoil, None
        return spoil


def garbled(content: bytes) -> bytes:
    """Other bytes, every one of them, and the same each time so that a run can be repeated."""
    return bytes(byte ^ 0xA5 for byte in content)


async def _close(connection: _Connection) -> None:
    for writer in (connection.client, connection.server):
        if writer:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
