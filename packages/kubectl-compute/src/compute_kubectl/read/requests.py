"""Requests to one plane with limits of time and size; answers become readings.

Everything from a plane is bounded: a list by pages, an answer by bytes, a plane by the time spent
on it. A plane that is slow or hostile then costs seconds, never the answer about the others.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlencode

from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.read.kinds import ReadKind
from compute_kubectl.read.transport import (
    Endpoint,
    PlaneError,
    Transport,
    WireAnswer,
    WireRequest,
)
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.capture import Reading
from compute_kubectl.snapshot.json_reads import objects_at, text_at

PAGE: Final = 500
MOST_PAGES: Final = 20
_GONE: Final = 410

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and JSON of one answer, and the time by the server's clock."""

    status: int
    document: JsonValue
    date: datetime | None


@dataclass(frozen=True, slots=True)
class SentRequest:
    """One request as it was sent, for progress lines and tests."""

    plane: str
    method: str
    path: str
    query: str


Sent = Callable[[SentRequest], None]


def utc_now() -> datetime:
    return datetime.now(UTC)


class PlaneClient:
    """Reads one plane within a time limit that all its requests share; used by one thread."""

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        transport: Transport,
        *,
        timeout: timedelta,
        sent: Sent | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.skew: timedelta | None = None
        self._endpoint = endpoint
        self._transport = transport
        self._clock = clock or utc_now
        self._left = timeout.total_seconds()
        self._timeout = timeout
        self._sent = sent
        self._failed: PlaneError | None = None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """The answer to one GET.

        Raises:
            PlaneError: there is no answer in time, or none that can be used.
        """
        return self._request("GET", path, query)

    def send(
        self, method: str, path: str, body: JsonValue, *, content_type: str, dry_run: bool
    ) -> Answer:
        """A write; only `plan` (dry run), `restart` and `scale` have one."""
        query = {"dryRun": "All"} if dry_run else {}
        content = json.dumps(body).encode()
        return self._request(method, path, query, content, content_type)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        content: bytes | None = None,
        content_type: str = "",
    ) -> Answer:
        if self._failed is not None:
            raise self._failed
        words = urlencode(query or {})
        if self._sent is not None:
            self._sent(SentRequest(self.name, method, path, words))
        started = time.monotonic()
        try:
            return self._exchange(method, path, words, content, content_type)
        except PlaneError:
            raise
        except TimeoutError:
            failure = PlaneError(
                Access.UNREACHABLE,
                f"no answer within {self._timeout.total_seconds():g} s; see --timeout",
            )
            self._failed = failure
            raise failure from None
        except (OSError, http.client.HTTPException, ValueError) as cause:
            # ValueError: a host name or a header that cannot be encoded.
            # Further requests would fail likewise: one failure is enough for the plane.
            self._failed = PlaneError(Access.UNREACHABLE, _why(cause))
            raise self._failed from None
        finally:
            self._left -= time.monotonic() - started

    def _exchange(
        self, method: str, path: str, words: str, content: bytes | None, content_type: str
    ) -> Answer:
        if self._left <= 0:
            raise TimeoutError
        target = f"{self._endpoint.prefix}{path}{f'?{words}' if words else ''}"
        request = WireRequest(method, target, content, content_type)
        return self._answer(self._transport.exchange(self._endpoint, request, self._left))

    def _answer(self, answer: WireAnswer) -> Answer:
        date = _parse_date(answer.date)
        if date is not None and self.skew is None:
            self.skew = date - self._clock()
        try:
            document: JsonValue = json.loads(answer.body) if answer.body else None
        except (ValueError, RecursionError):
            if answer.status < http.client.BAD_REQUEST:
                raise PlaneError(Access.UNREACHABLE, "the answer is no JSON") from None
            document = None
        return Answer(answer.status, document, date)

    # --- readings ---------------------------------------------------------------------------------

    def read(
        self,
        kind: ReadKind,
        namespace: str = "",
        *,
        query: Mapping[str, str] | None = None,
        most_pages: int = MOST_PAGES,
    ) -> Reading:
        """All objects of a kind, page by page; a read that ends early has its state."""
        items: list[JsonObject] = []
        token = ""
        for _ in range(most_pages):
            asked = {**(query or {}), "limit": str(PAGE), **({"continue": token} if token else {})}
            try:
                answer = self.get(kind.path(namespace), asked)
            except PlaneError as failure:
                return self._ended(failure.access, items, failure.detail)
            if answer.status == _GONE and token:
                return self._ended(Access.READ, items, "the list changed", is_partial=True)
            if answer.status != http.client.OK:
                return self._ended(*_refusal(answer))
            items += (_named(item, kind) for item in objects_at(answer.document, "items"))
            token = text_at(answer.document, "metadata", "continue")
            if not token:
                return self._ended(Access.READ, items)
        return self._ended(Access.READ, items, f"cut at {len(items)} objects", is_partial=True)

    def read_one(self, kind: ReadKind, name: str, namespace: str = "") -> Reading:
        """One object by name; a reading without items where it does not exist."""
        try:
            answer = self.get(kind.path(namespace, name))
        except PlaneError as failure:
            return self._ended(failure.access, [], failure.detail)
        if answer.status == http.client.OK and isinstance(answer.document, dict):
            return self._ended(Access.READ, [_named(answer.document, kind)])
        if answer.status == http.client.NOT_FOUND and text_at(answer.document, "details", "name"):
            return self._ended(Access.READ, [])
        return self._ended(*_refusal(answer))

    def _ended(
        self,
        access: Access,
        items: list[JsonObject],
        detail: str = "",
        *,
        is_partial: bool = False,
    ) -> Reading:
        kept = tuple(items) if access is Access.READ else ()
        return Reading(access, kept, self._clock(), detail, is_partial)


def _named(item: JsonObject, kind: ReadKind) -> JsonObject:
    """Items of a list of built-in kinds come without their kind."""
    return item if "kind" in item else {"kind": kind.kind, **item}


def _refusal(answer: Answer) -> tuple[Access, list[JsonObject], str]:
    message = text_at(answer.document, "message")
    match answer.status:
        case http.client.UNAUTHORIZED:
            return Access.REFUSED, [], "the credentials of this context are not accepted (401)"
        case http.client.FORBIDDEN:
            return Access.REFUSED, [], message
        case http.client.NOT_FOUND | http.client.METHOD_NOT_ALLOWED:
            return Access.NOT_SERVED, [], ""
        case status:
            return Access.UNREACHABLE, [], f"the server answered {status}: {message}".rstrip(": ")


def _parse_date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        return None


def _why(cause: Exception) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {cause.verify_message}"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__
