"""Turns the bytes of a watch into events, decoding no more of an object than its header. Pure.

The hot path of the whole system: an API server writes `{"type":"MODIFIED","object":{…}}` per line,
so the object's bytes are a slice of the line and need no second encoding. Another spelling of the
same event is understood too, only slower. A line that is no event at all raises: the stream is
broken, and nothing it holds is believed. An event whose object cannot be read is an `Illegible`:
one bad object must not end the stream for the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from compute_operator_kit.errors import UnavailableError
from compute_operator_kit.keys import Kind, PlaneName
from compute_operator_kit.kube import (
    Bookmark,
    Changed,
    Expired,
    Illegible,
    Removed,
    WatchEvent,
)
from compute_operator_kit.objects import parse_object
from compute_operator_kit.served import parse_echo
from compute_operator_kit.wire import (
    JsonObject,
    UndecodableError,
    decode_foreign,
    member_int,
    member_object,
    member_text,
)

# An object is at most 1.5 MB at the server; an event around it a little more. Beyond that it is not
# a watch stream.
LONGEST_LINE: Final = 4 * 1024 * 1024
_USUAL: Final = re.compile(rb'\{"type":"(ADDED|MODIFIED|DELETED)","object":')


class LineSplitter:
    """Cuts chunks into lines; what follows the last newline waits for the next chunk."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Whole lines, without their end and without empty ones."""
        *whole, rest = chunk.split(b"\n")
        if whole and self._pieces:
            whole[0] = b"".join((*self._pieces, whole[0]))
            self._pieces, self._length = [], 0
        if rest:
            self._pieces.append(rest)
            self._length += len(rest)
        if self._length > self._longest:
            raise UndecodableError(f"reading a watch: a line of over {self._longest} bytes")
        return (line for line in whole if line)


def parse_event(plane: PlaneName, kind: Kind, line: bytes) -> WatchEvent:
    """The event of one line; `UndecodableError` if it is none."""
    usual = _USUAL.match(line)
    if usual is not None and line.endswith(b"}"):
        try:
            delivered = parse_echo(plane, kind, line[usual.end() : -1])
        except UndecodableError:
            pass  # not an object, or further members after it: the slow way tells which
        else:
            return Removed(delivered) if usual[1] == b"DELETED" else Changed(delivered)
    return _parse_slowly(plane, kind, line)


def _parse_slowly(plane: PlaneName, kind: Kind, line: bytes) -> WatchEvent:
    """Bookmarks, errors, other spellings, and objects that cannot be read."""
    event = decode_foreign(line)
    word, body = member_text(event, "type"), event.get("object")
    if not isinstance(body, dict):
        raise UndecodableError("reading a watch: an event without an object")
    if word == "ERROR":
        return _parse_error(kind, body)
    if word == "BOOKMARK":
        return Bookmark(_version_of(body))
    if word not in {"ADDED", "MODIFIED", "DELETED"}:
        raise UndecodableError(f"reading a watch: event type {word[:32]!r}")
    try:
        delivered = parse_object(plane, kind, body, None)
    except UndecodableError:
        return Illegible(_version_of(body))
    return Removed(delivered) if word == "DELETED" else Changed(delivered)


def _version_of(body: JsonObject) -> str:
    return member_text(member_object(body, "metadata"), "resourceVersion")


def _parse_error(kind: Kind, body: JsonObject) -> Expired:
    code = member_int(body, "code")
    if code == 410:
        return Expired()
    raise UnavailableError(
        "WatchError", f"watching {kind.kind}: the server ended the stream with {code}"
    )
