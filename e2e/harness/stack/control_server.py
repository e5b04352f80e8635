"""A thread that receives requests of Milo's controllers to start and stop project planes.

It has its own event loop, because a stack belongs to no loop and must answer at any time. Programs
are started from this thread, and the kernel ends them with it (`die_with_parent`), so it lives as
long as the stack.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from pydantic import ValidationError

from e2e.harness.errors import PlanesError
from e2e.harness.gateway.planes_on_demand import PlaneLifecycleReply, PlaneLifecycleRequest

RequestHandler: TypeAlias = Callable[[PlaneLifecycleRequest], Awaitable[PlaneLifecycleReply]]
_log: Final = logging.getLogger(__name__)


class ControlServer:
    """Listens on a reserved port from `start` to `stop`."""

    def __init__(self, address: str, port: int, carry_out: RequestHandler) -> None:
        self.address = address
        self.port = port
        self.secret = secrets.token_hex(20)
        self._carry_out = carry_out
        self._thread = threading.Thread(target=self._live, name="planes-control", daemon=True)
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
        """Ends the thread without waiting for a plane that is starting."""
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
            # The stack ends. Not raised, because asyncio's server would log a traceback.
            return
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> PlaneLifecycleReply:
        try:
            request = PlaneLifecycleRequest.model_validate_json(line)
        except ValidationError as nonsense:
            return PlaneLifecycleReply(refusal=f"not understood: {nonsense}")
        if not secrets.compare_digest(request.secret, self.secret):
            return PlaneLifecycleReply(refusal="not one of ours")
        try:
            return await self._carry_out(request)
        except (PlanesError, OSError) as refused:
            return PlaneLifecycleReply(refusal=str(refused))
