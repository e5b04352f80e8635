"""Which requests the page's server answers: the token, the host, the method and the path. Pure.

Loopback is open to every program and to every page in the browser. A page of another site can send
requests there, and one whose name is made to resolve to loopback can read the answers: the token
stops the first, the check of `Host` the second.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

LONGEST_TARGET: Final = 2048
MOST_PARAMETERS: Final = 8
_OWN_SITE: Final = frozenset({"same-origin", "none"})


class RequestError(Exception):
    """A request that is not answered; `status` is that of the response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Request line and headers, names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request that passed every check: its path below the token, and its parameters."""

    path: str
    parameters: Mapping[str, str]


def parse_head(raw: bytes) -> RequestHead:
    """The head of a request, without its empty line."""
    first, *lines = raw.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise RequestError(400, "not a request of HTTP/1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or name != name.strip() or (name == "host" and name in headers):
            raise RequestError(400, "a header cannot be read")
        headers[name] = value.strip()
    return RequestHead(words[0], words[1], headers)


def check_request(head: RequestHead, token: str, port: int) -> PageRequest:
    """The request below its token; raises for every other one."""
    if head.headers.get("host", "") not in {f"127.0.0.1:{port}", f"localhost:{port}"}:
        raise RequestError(421, "the Host header does not name this server")
    if head.headers.get("sec-fetch-site", "none") not in _OWN_SITE:
        raise RequestError(403, "requests of other sites are not answered")
    if len(head.target) > LONGEST_TARGET:
        raise RequestError(414, "the address is too long")
    parts = urlsplit(head.target)
    given, slash, path = parts.path.removeprefix("/").partition("/")
    if not hmac.compare_digest(given.encode(), token.encode()):
        raise RequestError(403, "the token in the address is missing or wrong")
    if head.method != "GET":
        raise RequestError(405, "only GET is answered")
    if not slash:
        raise RequestError(404, "the address of the page ends with a slash")
    try:
        parameters = parse_qsl(parts.query, max_num_fields=MOST_PARAMETERS)
    except ValueError as cause:
        raise RequestError(400, "too many parameters") from cause
    return PageRequest(path, dict(parameters))
