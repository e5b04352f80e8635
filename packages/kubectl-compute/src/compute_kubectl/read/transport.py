"""HTTPS exchanges with API servers: one request in, one bounded answer out.

Connections are shared by all planes of one server, so that fifty cells behind the hub need no fifty
TLS handshakes. `Transport` is the port: the command has `HttpsTransport`, and simulated planes have
one of their own.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import urlsplit

from typing_extensions import override

from compute_kubectl.snapshot.access import Access

# 500 Instances with full statuses are some 4 MB.
MOST_BYTES: Final = 32 << 20
_CHUNK: Final = 1 << 16
LONGEST_DETAIL: Final = 200


class PlaneError(Exception):
    """A request that got no usable answer; `access` is the state of the read."""

    def __init__(self, access: Access, detail: str) -> None:
        super().__init__(detail)
        self.access = access
        self.detail = detail[:LONGEST_DETAIL]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and credentials of one API server."""

    server: str
    context: ssl.SSLContext = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    hostname: str = ""
    prefix: str = ""

    def below(self, prefix: str) -> Endpoint:
        """The same server at a path below."""
        return Endpoint(
            self.server, self.context, self.headers, self.hostname, self.prefix + prefix
        )


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One request; `target` is the path with its query, below the server's own path."""

    method: str
    target: str
    content: bytes | None = None
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """Status, the server's `Date` header and the whole body."""

    status: int
    date: str
    body: bytes


class Transport(Protocol):
    """What carries requests to API servers; used by many threads."""

    def exchange(self, endpoint: Endpoint, request: WireRequest, seconds: float) -> WireAnswer:
        """The answer within that time.

        Raises:
            OSError, HTTPException: there is none; `TimeoutError` where it is late.
            PlaneError: it is larger than `MOST_BYTES`.
        """
        ...

    def close(self) -> None: ...


class _Connection(http.client.HTTPSConnection):
    """A TLS connection; the certificate may name another host than the URL."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        url = urlsplit(endpoint.server)
        super().__init__(url.hostname or "", url.port or 443, timeout=timeout)
        self._tls = endpoint.context
        self._server_hostname = endpoint.hostname or url.hostname or ""

    @override
    def connect(self) -> None:
        raw = socket.create_connection((self.host, self.port), self.timeout)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.sock = self._tls.wrap_socket(raw, server_hostname=self._server_hostname)
        except BaseException:
            raw.close()
            raise


class HttpsTransport:
    """Idle connections by server and credentials, each used by one thread at a time."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int, str], list[_Connection]] = {}
        self._lock = threading.Lock()

    def exchange(self, endpoint: Endpoint, request: WireRequest, seconds: float) -> WireAnswer:
        deadline = time.monotonic() + seconds
        connection, is_used = self._take(endpoint, seconds)
        try:
            try:
                response = _ask(connection, endpoint, request, seconds)
            except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError):
                if not is_used or request.content is not None:
                    raise
                # The server closed an idle connection: a new one is no second try of a write.
                connection.close()
                connection = _Connection(endpoint, seconds)
                response = _ask(connection, endpoint, request, seconds)
            body = _read(connection, response, deadline)
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._give_back(endpoint, connection)
        return WireAnswer(response.status, response.headers.get("Date", ""), body)

    def _take(self, endpoint: Endpoint, timeout: float) -> tuple[_Connection, bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            idle = self._idle.get(_key(endpoint))
            if idle:
                return idle.pop(), True
        return _Connection(endpoint, timeout), False

    def _give_back(self, endpoint: Endpoint, connection: _Connection) -> None:
        with self._lock:
            self._idle.setdefault(_key(endpoint), []).append(connection)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()


def _key(endpoint: Endpoint) -> tuple[str, int, str]:
    url = urlsplit(endpoint.server)
    return url.netloc, id(endpoint.context), endpoint.hostname


def _ask(
    connection: _Connection, endpoint: Endpoint, request: WireRequest, seconds: float
) -> http.client.HTTPResponse:
    target = urlsplit(endpoint.server).path.rstrip("/") + request.target
    headers = {"Accept": "application/json", "User-Agent": "kubectl-compute"}
    headers |= endpoint.headers
    if request.content is not None:
        headers["Content-Type"] = request.content_type
    if connection.sock is not None:
        connection.sock.settimeout(seconds)
    connection.request(request.method, target, body=request.content, headers=headers)
    return connection.getresponse()


def _read(connection: _Connection, response: http.client.HTTPResponse, deadline: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if connection.sock is not None:  # a body that trickles in shares the time of its plane
            connection.sock.settimeout(left)
        chunk = response.read1(_CHUNK)
        if not chunk:
            break
        parts.append(chunk)
        size += len(chunk)
        if size > MOST_BYTES:
            raise PlaneError(Access.UNREACHABLE, f"the answer is over {MOST_BYTES >> 20} MiB")
    # Python 3.11 does not end a response by itself where `read1` has taken its last byte.
    response.close()
    return b"".join(parts)
