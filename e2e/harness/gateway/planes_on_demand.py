"""The protocol by which Milo's controllers request planes from the stack: one JSON line each way.

The stack owns every process, so that a dead one is named and all end together; the controllers know
when a project needs one. Pure except for the request.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from pydantic import BaseModel, ConfigDict

# An API server that starts beside many others is slow; the stack's own timeout is shorter.
PATIENCE_SECONDS = 120


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlaneLifecycleRequest(_Line):
    """Starts or stops a plane; `secret` authenticates a controller of this stack."""

    secret: str
    wish: Literal["begin", "end"]
    project: str


class PlaneLifecycleReply(_Line):
    """Address and administrator's token of the plane, or the reason of a failure."""

    server: str = ""
    token: str = ""
    refusal: str = ""


class PlaneRefusedError(OSError):
    """The stack cannot provide the plane; the caller retries later."""


async def ask_for_plane(
    address: str, port: int, request: PlaneLifecycleRequest
) -> PlaneLifecycleReply:
    """Sends a request to the stack and waits for its result."""
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
    reply = PlaneLifecycleReply.model_validate_json(line)
    if reply.refusal:
        raise PlaneRefusedError(f"asking for plane {request.project!r}: {reply.refusal}")
    return reply
