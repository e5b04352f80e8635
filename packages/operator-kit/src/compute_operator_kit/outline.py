"""A few members of an object, read without the rest.

Most of a Workload is its template, and most of those who look at one ask for a city or a status.
Walking over what nobody asked for takes a quarter of the time of making it, and leaves nothing to
be freed.
"""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from compute_operator_kit.objects import Snapshot
from compute_operator_kit.recent import LARGEST_SHARED, Recent
from compute_operator_kit.wire import JsonObject, UndecodableError, encode


class Outline:
    """The members that `shape` names: a `TypedDict` with `total=False` and, below the members it
    walks into, `object`.
    """

    __slots__ = ("_decoder", "_recent")

    def __init__(self, shape: type[object]) -> None:
        self._decoder = msgspec.json.Decoder(shape)
        self._recent: Recent[JsonObject] = Recent()

    def read(self, snapshot: Snapshot) -> JsonObject:
        """These members of an object, or more: one of another shape is given whole. Shared with
        whoever reads it about now: not to be changed.
        """
        version, kept = snapshot.version, snapshot.kept
        found = self._recent.find(version, kept)
        return found or self._recent.keep(version, kept, self._decode(snapshot))

    def cut(self, snapshot: Snapshot) -> bytes:
        """These members as JSON, for one whose body is not kept; empty where they are long too."""
        try:
            cut = encode(self._decode(snapshot))
        except UndecodableError:
            return b""
        return cut if len(cut) <= LARGEST_SHARED else b""

    def _decode(self, snapshot: Snapshot) -> JsonObject:
        raw = snapshot.outlined or snapshot.raw
        try:
            found = self._decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            return snapshot.read()
        return found if _is_object(found) else snapshot.read()


def _is_object(found: object) -> TypeGuard[JsonObject]:
    return isinstance(found, dict)
