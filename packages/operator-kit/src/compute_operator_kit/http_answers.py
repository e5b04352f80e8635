"""Reads one HTTP/1.1 answer out of the bytes of a connection, however they are cut. No I/O.

For answers that are taken whole: status, headers, body. The parser is Node's (`httptools`); here is
what an API server's answer must be besides. What is not raises: the connection is then of no use,
and nothing the answer holds is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

LONGEST_HEAD: Final = 64 * 1024
_WITHOUT_BODY: Final = frozenset({204, 304})


class GarbledAnswerError(ValueError):
    """Bytes that are no answer."""


class AnswerReader:
    """One answer; fed until `is_complete`, then read."""

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
        """`largest`: a body is cut there, and the answer complete; who asked sees its length."""
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
        """Names are in lower case."""
        return self._headers

    @property
    def body(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    @property
    def has_begun(self) -> bool:
        """Whether anything of the answer has arrived."""
        return self._fed > 0

    def feed(self, data: bytes | memoryview) -> None:
        """Takes what has arrived, and keeps no part of `data` itself; what comes after the end
        makes the connection of no use.
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
            self._parser = None  # it knows us, and a ring is the collector's to find

    def end(self) -> bool:
        """The connection was closed; whether that was the end of the answer."""
        self.is_complete = self.is_complete or self._ends_with_connection
        return self.is_complete

    # what the parser tells; whatever these raise comes out of `feed` ------------------------------

    def on_message_begin(self) -> None:
        if self.is_complete:
            self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_head:
            self.is_reusable = False  # trailers are for nobody, and API servers send none
        elif not self.is_complete:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser is None or self.is_complete or parser.get_status_code() < 200:
            return
        self.status, self._has_head = parser.get_status_code(), True
        self.is_reusable = parser.should_keep_alive()
        self._ends_with_connection = _judge_length(self.status, self._headers)

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
            self._headers.clear()  # of an interim answer (1xx), which is passed over


def _judge_length(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the body lasts as long as the connection; raises where its length is in doubt."""
    if headers.get("content-encoding", "identity") != "identity":
        raise GarbledAnswerError("reading an answer: an encoding nobody asked for")
    coding = headers.get("transfer-encoding", "")
    # With a length beside it, somebody on the way may count differently.
    if coding and (coding.lower() != "chunked" or "content-length" in headers):
        raise GarbledAnswerError("reading an answer: its length cannot be known")
    return not coding and "content-length" not in headers and status not in _WITHOUT_BODY
