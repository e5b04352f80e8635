"""The partial decoder: it decodes a few members of an object and skips the rest.

Most of a Workload is its template, and most readers need a city or a status. Skipping members takes
a quarter of the time of decoding them and allocates nothing.
"""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from compute_operator_kit.core.decode_cache import LARGEST_SHARED, DecodeCache
from compute_operator_kit.core.json import JsonObject, UndecodableError, encode
from compute_operator_kit.core.objects import Snapshot


class PartialDecoder:
    """Decodes the members of `shape`: a `TypedDict` with `total=False` and `object` as leaves."""

    __slots__ = ("_decoder", "_recent")

    def __init__(self, shape: type[object]) -> None:
        self._decoder = msgspec.json.Decoder(shape)
        self._recent: DecodeCache[JsonObject] = DecodeCache()

    def read(self, snapshot: Snapshot) -> JsonObject:
        """The members of an object, or the whole object if its shape is unusual; shared with other
        readers and not to be changed.
        """
        version, kept = snapshot.version, snapshot.kept
        decoded = self._recent.find(version, kept)
        return decoded or self._recent.put(version, kept, self._decode(snapshot))

    def cut(self, snapshot: Snapshot) -> bytes:
        """The members as JSON, to keep without the body; empty if they are long too."""
        try:
            cut = encode(self._decode(snapshot))
        except UndecodableError:
            return b""
        return cut if len(cut) <= LARGEST_SHARED else b""

    def _decode(self, snapshot: Snapshot) -> JsonObject:
        raw = snapshot.partial or snapshot.raw
        try:
            decoded = self._decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            return snapshot.read()
        return decoded if _is_object(decoded) else snapshot.read()


def _is_object(decoded: object) -> TypeGuard[JsonObject]:
    return isinstance(decoded, dict)
