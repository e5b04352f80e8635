"""Loopback ports that stay reserved until the stack ends.

A free port that was released may be taken by another program. Here the socket stays bound: without
SO_REUSEADDR at first, so that the port was really free, then with it, so that a server that sets
SO_REUSEADDR (every Go program) can listen beside it, and again after a restart. The kernel does not
assign the port to another program meanwhile.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Final, Self

LOOPBACK: Final = "127.0.0.1"


class Ports:
    """Reserves and holds ports of one address."""

    def __init__(self, address: str = LOOPBACK) -> None:
        self._address = address
        self._held: list[socket.socket] = []

    @property
    def address(self) -> str:
        return self._address

    def reserve(self) -> int:
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._held.append(holder)
        holder.bind((self._address, 0))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # getsockname of an IPv4 socket returns (host, port).
        port: int = holder.getsockname()[1]
        return port

    def close(self) -> None:
        for holder in self._held:
            holder.close()
        self._held.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
