"""The parser of one HTTP/1.1 response, fed with the bytes of a connection in any chunks. No I/O.

It uses Node's parser (`httptools`) and checks what an API server's response must be besides; any
other response raises, the connection is closed, and no part of the response is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

LONGEST_HEAD: Final = 64 * 1024
_WITHOUT_BODY: Final = frozenset({204, 304})


class GarbledAnswerError(ValueError):
    """Bytes that are not a valid response."""


class AnswerReader:
    """One response; fed until `is_complete`, then read."""

    __slots__ = (
        "_ends_with_connection",
        "_fed",
        "_has_head",
        "_headers",
        "_largest",
        "_length",
        "_parser",
        "_pieces",
        "is_complete",
        "is_reusable",
        "status",
    )

    def __init__(self, largest: int) -> None:
        """A body longer than `largest` is cut there, and the caller refuses it by its length."""
        self.status = 0
        self.is_complete = False
        self.is_reusable = False  # whether the connection may carry another request
        self._headers: dict[str, str] = {}
        self._largest = largest
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._fed = 0
        self._has_head = False
        self._ends_with_connection = False
        self._pieces: list[bytes] = []
        self._length = 0

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, with names in lower case."""
        return self._headers

    @property
    def body(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    @property
    def has_begun(self) -> bool:
        """Whether any byte of the response was received."""
        return self._fed > 0

    def feed(self, data: bytes | memoryview) -> None:
        """Parses received bytes without keeping `data`; bytes after the end of the response make
        the connection unusable.
        """
        if self._parser is None:
            self.is_reusable = False
            return
        self._fed += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self.is_complete:
                raise GarbledAnswerError(f"reading an answer: {type(error).__name__}") from error
            self.is_reusable = False
        if not self._has_head and self._fed > LONGEST_HEAD:
            raise GarbledAnswerError("reading an answer: its head does not end")
        if self.is_complete:
            self._parser = None  # breaks the reference cycle with its callbacks

    def end(self) -> bool:
        """The connection was closed; whether that ends the response."""
        self.is_complete = self.is_complete or self._ends_with_connection
        return self.is_complete

    # callbacks of the parser; `feed` raises what they raise --------------------------------------

    def on_message_begin(self) -> None:
        if self.is_complete:
            self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_head:
            self.is_reusable = False  # a trailer, which API servers do not send
        elif not self.is_complete:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser is None or self.is_complete or parser.get_status_code() < 200:
            return
        self.status, self._has_head = parser.get_status_code(), True
        self.is_reusable = parser.should_keep_alive()
        self._ends_with_connection = _is_unbounded(self.status, self._headers)

    def on_body(self, data: bytes) -> None:
        if self.is_complete:
            return
        self._pieces.append(data)
        self._length += len(data)
        if self._length > self._largest:
            self.is_reusable, self.is_complete = False, True

    def on_message_complete(self) -> None:
        if self._has_head:
            self.is_complete = True
        else:
            self._headers.clear()  # of an interim response (1xx), which is ignored


def _is_unbounded(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the body ends with the connection; raises if its length is ambiguous."""
    if headers.get("content-encoding", "identity") != "identity":
        raise GarbledAnswerError("reading an answer: an encoding nobody asked for")
    coding = headers.get("transfer-encoding", "")
    # With a Content-Length too, a proxy on the way may have read another length.
    if coding and (coding.lower() != "chunked" or "content-length" in headers):
        raise GarbledAnswerError("reading an answer: its length cannot be known")
    return not coding and "content-length" not in headers and status not in _WITHOUT_BODY
