"""Index functions of a store: the values under which an object is looked up. Pure.

They run for every event, so that a function declares how little of an object it reads. An object of
an odd shape, on which a function raises, has no values; it must not end the watch for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeAlias

from compute_operator_kit.core.json import JsonObject, UndecodableError
from compute_operator_kit.core.objects import Metadata, ReceivedObject, Snapshot, parse_version
from compute_operator_kit.core.partial_decoder import PartialDecoder

# The body is shared with the store and must not be changed.
IndexFunction: TypeAlias = Callable[[Metadata, JsonObject], Iterable[str]]
Values: TypeAlias = Mapping[str, tuple[str, ...]]

NO_VALUES: Final[Values] = MappingProxyType({})


class Reads(StrEnum):
    """What an index function reads of an object."""

    HEADER = "header"
    SPEC = "spec"  # and name, namespace and UID


@dataclass(frozen=True, slots=True)
class PartialIndex:
    """An index function that reads only a part of an object."""

    function: IndexFunction
    reads: Reads

    def __call__(self, metadata: Metadata, body: JsonObject) -> Iterable[str]:
        return self.function(metadata, body)


def metadata_index(function: IndexFunction) -> PartialIndex:
    """An index over metadata; a store with only such indexes decodes no body."""
    return PartialIndex(function, Reads.HEADER)


def spec_index(function: IndexFunction) -> PartialIndex:
    """An index over the spec; a store with only such indexes keeps the values of an object while
    its generation is the same, without decoding it.
    """
    return PartialIndex(function, Reads.SPEC)


class Indexers:
    """The index functions of one store; `decoder` reads all members they need, None: everything."""

    def __init__(
        self, functions: Mapping[str, IndexFunction], decoder: PartialDecoder | None = None
    ) -> None:
        self.names = tuple(functions)
        self._functions = dict(functions)
        self._decoder = decoder
        self._needs_body = not self._all_read(Reads.HEADER)
        self._reads_spec_only = self._all_read(Reads.SPEC)

    def _all_read(self, reads: Reads) -> bool:
        return all(
            isinstance(one, PartialIndex) and one.reads is reads for one in self._functions.values()
        )

    def evaluate(
        self, received: ReceivedObject, before: Metadata | None, values_before: Values
    ) -> Values:
        """The values of a received object; `before` and `values_before` are of the held version."""
        if not self._functions:
            return NO_VALUES  # without decoding the object
        metadata = received.snapshot.metadata
        if self._reads_spec_only and before is not None and _has_same_spec(before, metadata):
            return values_before
        try:
            body = self._read(received) if self._needs_body else {}
        except UndecodableError:
            # The header decoder skipped the bad part (a number out of range): a reader of the body
            # reports it, and the watch goes on.
            return _seal(self.names, ((),) * len(self.names))
        return _seal(self.names, tuple([self._values(name, metadata, body) for name in self.names]))

    def cut_partial(self, snapshot: Snapshot) -> bytes:
        """The members to keep of an object that is cached without its body."""
        return b"" if self._decoder is None else self._decoder.cut(snapshot)

    def _read(self, received: ReceivedObject) -> JsonObject:
        if self._decoder is None or received.decoded is not None:
            return received.body
        return self._decoder.read(received.snapshot)

    def _values(self, name: str, metadata: Metadata, body: JsonObject) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(self._functions[name](metadata, body)))
        except (LookupError, TypeError, ValueError, AttributeError):
            return ()


@lru_cache(maxsize=1024)
def _seal(names: tuple[str, ...], values: tuple[tuple[str, ...], ...]) -> Values:
    """Shares equal values: all replicas of one deployment have the same."""
    return MappingProxyType(dict(zip(names, values, strict=True)))


def _has_same_spec(held: Metadata, received: Metadata) -> bool:
    """By generation; not for kinds without one (always 0), nor if the version went back: a restored
    plane gives the same generation again to another spec.
    """
    is_counted = 0 < held.generation == received.generation and held.uid == received.uid
    return is_counted and parse_version(held.resource_version) < parse_version(
        received.resource_version
    )
