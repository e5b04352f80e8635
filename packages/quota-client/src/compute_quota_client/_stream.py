"""Decodes the byte stream of a watch into events; pure.

Kubernetes sends one JSON object per line. Lines are split at `\\n` alone: text libraries also split
at characters that are legal inside a JSON string.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pydantic import JsonValue, ValidationError

from compute_quota_client._depth import TOO_DEEP, is_too_deep
from compute_quota_client._wire import Wire, WireClaim, WireFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compute_quota_client._models import FoundClaim

# etcd stores no object over about 1.5 MiB. A longer line is no event, and must not fill the memory.
MAX_LINE: Final = 4 * 1024 * 1024


class GarbageLineError(ValueError):
    """A line of the stream is no watch event."""


@dataclass(frozen=True, slots=True)
class Put:
    """A claim was added or modified."""

    claim: FoundClaim


@dataclass(frozen=True, slots=True)
class Removed:
    """A claim was deleted, or its labels match no more."""

    claim: FoundClaim


@dataclass(frozen=True, slots=True)
class Bookmark:
    """No other change up to this resourceVersion."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class StreamError:
    """The server ends the watch; 410: its history does not reach back to the version."""

    code: int


Line: TypeAlias = Put | Removed | Bookmark | StreamError


class _EventType(Wire):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: JsonValue


class _BookmarkMetadata(Wire):
    resource_version: str


class _BookmarkObject(Wire):
    metadata: _BookmarkMetadata


class LineSplitter:
    """Splits chunks of bytes into whole lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that `chunk` completes, empty ones left out.

        Raises:
            GarbageLineError: a line has no end.
        """
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise GarbageLineError("a line has no end")
        return (line for line in whole if line.strip())


def parse_line(line: bytes) -> Line:
    """The event in one line.

    Raises:
        GarbageLineError: it is no watch event, or one of another kind.
    """
    if is_too_deep(line):
        raise GarbageLineError(f"a line is {TOO_DEEP}")
    try:
        event = _EventType.model_validate_json(line)
        if event.type == "BOOKMARK":
            bookmark = _BookmarkObject.model_validate(event.object)
            return Bookmark(bookmark.metadata.resource_version)
        if event.type == "ERROR":
            return StreamError(WireFailure.model_validate(event.object).code or 0)
        claim = WireClaim.model_validate(event.object).to_found()
    except (ValidationError, ValueError):
        # The messages are dropped: both quote the line.
        raise GarbageLineError("a line is no watch event") from None
    return Removed(claim) if event.type == "DELETED" else Put(claim)
