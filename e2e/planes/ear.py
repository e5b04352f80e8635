"""The stack's ear: a thread that hears from Milo's controllers which planes are to begin and end.

A thread with a loop of its own, because a stack belongs to no event loop and must answer whatever
its user does. Programs are started from it, and the kernel ends them with it (see `tether`): it
lives as long as the stack.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from pydantic import ValidationError

from e2e.planes.errors import PlanesError
from e2e.planes.gateway.planes_on_demand import Reply, Request

Carry: TypeAlias = Callable[[Request], Awaitable[Reply]]
_log: Final = logging.getLogger(__name__)


class Ear:
    """Listens on a reserved port from `start` to `stop`."""

    def __init__(self, address: str, port: int, carry_out: Carry) -> None:
        self.address = address
        self.port = port
        self.secret = secrets.token_hex(20)
        self._carry_out = carry_out
        self._thread = threading.Thread(target=self._live, name="planes-ear", daemon=True)
        self._listening = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._failure: OSError | None = None

    def start(self) -> None:
        self._thread.start()
        self._listening.wait()
        if self._failure:
            raise PlanesError(
                f"listening for Milo's controllers: {self._failure}", remedy="run again"
            ) from self._failure

    def stop(self) -> None:
        """Ends it; a plane that is just beginning is not waited for."""
        loop, self._loop = self._loop, None
        if loop and self._task and self._thread.is_alive():
            loop.call_soon_threadsafe(self._task.cancel)
        if self._thread.ident:
            self._thread.join()

    def _live(self) -> None:
        try:
            asyncio.run(self._listen())
        except OSError as failure:
            self._failure = failure
        finally:
            self._listening.set()

    async def _listen(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        server = await asyncio.start_server(self._hear, self.address, self.port, reuse_address=True)
        self._listening.set()
        try:
            await server.serve_forever()
        except asyncio.CancelledError:
            return

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            reply = await self._answer(await reader.readline())
            writer.write(reply.model_dump_json().encode() + b"\n")
            await writer.drain()
        except OSError as gone:
            _log.info("Answering Milo's controllers", extra={"cause": str(gone)})
        except asyncio.CancelledError:
            # The stack ends. Swallowed, because the server's own callback would tell a trace.
            return
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> Reply:
        try:
            request = Request.model_validate_json(line)
        except ValidationError as nonsense:
            return Reply(refusal=f"not understood: {nonsense}")
        if not secrets.compare_digest(request.secret, self.secret):
            return Reply(refusal="not one of ours")
        try:
            return await self._carry_out(request)
        except (PlanesError, OSError) as refused:
            return Reply(refusal=str(refused))
