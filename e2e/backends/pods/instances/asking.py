"""One HTTP request to a container of an Instance, at the address of its Pod."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from e2e.backends.pods.instances.web import PORT

PATIENCE: Final = timedelta(seconds=2)
OK: Final = b"HTTP/1.1 200 "


async def ask(address: str, path: str = "/") -> str:
    """The body of the answer; empty where nothing answers."""
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            reader, writer = await asyncio.open_connection(address, PORT)
            try:
                request = f"GET {path} HTTP/1.1\r\nHost: instance\r\nConnection: close\r\n\r\n"
                writer.write(request.encode())
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""
    head, _, body = answer.partition(b"\r\n\r\n")
    return body.decode() if head.startswith(OK) else ""
