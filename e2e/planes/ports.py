"""Loopback ports that stay ours until the stack ends.

A free port asked for and given back may be somebody else's a moment later. Here the socket stays
bound for as long as the stack lives: it was bound without SO_REUSEADDR, so it was really free, and
then allows reuse, so that a server which sets SO_REUSEADDR (every Go program does) can listen
beside it, and again after a restart. Nobody is handed the port by the kernel meanwhile.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Final, Self

LOOPBACK: Final = "127.0.0.1"


class Ports:
    """Reserves ports of one address and holds them."""

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
        # getsockname of an IPv4 socket answers (host, port).
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
