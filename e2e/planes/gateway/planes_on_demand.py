"""How Milo's controllers ask the stack for a plane, and how it is told: one line of JSON each way.

The stack owns every process, so that a dead one is named and all end together; the controllers know
when a project needs one. Pure, but for the asking.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from pydantic import BaseModel, ConfigDict

# An API server that starts beside many others takes its time; the stack gives up before that.
PATIENCE_SECONDS = 120


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Request(_Line):
    """A plane is to begin or to end; `secret` shows that a controller of this stack asks."""

    secret: str
    wish: Literal["begin", "end"]
    project: str


class Reply(_Line):
    """Where the plane is and its administrator's token; or why there is none."""

    server: str = ""
    token: str = ""
    refusal: str = ""


class PlaneRefusedError(OSError):
    """The stack has no such plane to give; whoever asked waits and asks again."""


async def ask_for_plane(address: str, port: int, request: Request) -> Reply:
    """Asks the stack and waits until it is done."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection(address, port)
        try:
            writer.write(request.model_dump_json().encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
        finally:
            writer.close()
    if not line:
        raise PlaneRefusedError(f"asking for plane {request.project!r}: no answer")
    reply = Reply.model_validate_json(line)
    if reply.refusal:
        raise PlaneRefusedError(f"asking for plane {request.project!r}: {reply.refusal}")
    return reply
