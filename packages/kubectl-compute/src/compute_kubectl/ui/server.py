"""The page's server: loopback only, a token in every address, GET only, everything bounded.

One request per connection, so that a connection has one deadline. No asset comes from outside, and
the policy lets the browser load, run and send nothing else.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from typing import Final, Self

from compute_api_types.wire import JsonObject
from compute_kubectl.ui.panels import PanelError, panel_document
from compute_kubectl.ui.refresh import Refresher, utc_now
from compute_kubectl.ui.requests import PageRequest, RequestError, check_request, parse_head

LOOPBACK: Final = "127.0.0.1"
LARGEST_HEAD: Final = 8192
MOST_CONNECTIONS: Final = 32
DEADLINE: Final = 10.0
POLICY: Final = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "img-src 'self'; "
    "connect-src 'self'; "
    "base-uri 'none'; "
    "form-action 'none'; "
    "frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
HTML: Final = "text/html; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
# The path below the token, the file, its media type. No other file is served.
ASSETS: Final = {
    "": ("page.html", HTML),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "map.js": ("map.js", "text/javascript; charset=utf-8"),
    "panel.js": ("panel.js", "text/javascript; charset=utf-8"),
    "dom.js": ("dom.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
    "land.txt": ("land.txt", TEXT),
}
PANELS: Final = frozenset({"why", "timeline", "tree"})


@dataclass(frozen=True, slots=True)
class PageResponse:
    """Status, media type and body of an answer."""

    status: int
    media: str
    body: bytes

    @classmethod
    def of_json(cls, document: JsonObject) -> PageResponse:
        return cls(200, JSON, json.dumps(document, ensure_ascii=False).encode())

    @classmethod
    def of_error(cls, status: int, message: str) -> PageResponse:
        return cls(status, TEXT, f"{message}\n".encode())

    def encode(self) -> bytes:
        headers = {
            **HEADERS,
            "Content-Type": self.media,
            "Content-Length": str(len(self.body)),
        }
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


def load_asset(path: str) -> PageResponse:
    name, media = ASSETS[path]
    file = resources.files("compute_kubectl.ui").joinpath("assets", name)
    return PageResponse(200, media, file.read_bytes())


class PageServer:
    """Serves one page; `async with` opens and closes its port."""

    def __init__(self, refresher: Refresher, *, port: int = 0, token: str = "") -> None:
        self.refresher = refresher
        self._port = port
        self._token = token or secrets.token_urlsafe(24)
        self._server: asyncio.Server | None = None
        self.connections = 0
        self._reads: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return f"http://{LOOPBACK}:{self._port}/{self._token}/"

    @property
    def port(self) -> int:
        return self._port

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses at which it listens."""
        sockets = self._server.sockets if self._server else ()
        return tuple(str(one.getsockname()[0]) for one in sockets)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, LOOPBACK, self._port, limit=LARGEST_HEAD
        )
        self._port = self._server.sockets[0].getsockname()[1]
        self._reads = asyncio.create_task(self.refresher.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reads is not None:
            self._reads.cancel()
            with suppress(asyncio.CancelledError):
                await self._reads
        if self._server is not None:
            self._server.close()

    async def run(self) -> None:
        """Serves until it is cancelled; raises what ended the reads."""
        if self._reads is not None:
            await self._reads

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if self.connections > MOST_CONNECTIONS:
                return
            async with asyncio.timeout(DEADLINE):
                writer.write((await self._respond(reader)).encode())
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return  # the other side is gone, or too slow: no answer reaches it
        finally:
            self.connections -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _respond(self, reader: asyncio.StreamReader) -> PageResponse:
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
            request = check_request(parse_head(raw[:-4]), self._token, self._port)
            return await self._answer(request)
        except asyncio.LimitOverrunError:
            return PageResponse.of_error(431, "the head of the request is too long")
        except RequestError as error:
            return PageResponse.of_error(error.status, str(error))

    async def _answer(self, request: PageRequest) -> PageResponse:
        if request.path in ASSETS:
            return load_asset(request.path)
        if request.path == "state":
            return PageResponse.of_json(self.refresher.state(request.parameters.get("known", "")))
        if request.path in PANELS:
            return await self._panel(request)
        raise RequestError(404, "there is nothing at this address")

    async def _panel(self, request: PageRequest) -> PageResponse:
        held = self.refresher.held
        if held is None:
            raise RequestError(503, "no plane has been read yet")
        try:
            document = await asyncio.to_thread(
                panel_document, request.path, held.snapshot, utc_now(), request.parameters
            )
        except PanelError as error:
            raise RequestError(404, str(error)) from error
        return PageResponse.of_json(document)
