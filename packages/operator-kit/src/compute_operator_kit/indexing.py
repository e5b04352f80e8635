"""Under which values a store finds an object, and how little of the object must be read to know.
Pure.

An index function may meet any shape: what it stumbles over is found under no value, is counted, and
affects no other object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeAlias

from compute_operator_kit.objects import Delivered, Metadata, Snapshot, parse_version
from compute_operator_kit.outline import Outline
from compute_operator_kit.wire import JsonObject, UndecodableError

# Values under which an object is found; the body is shared with the store and must not be changed.
IndexFunction: TypeAlias = Callable[[Metadata, JsonObject], Iterable[str]]
Values: TypeAlias = Mapping[str, tuple[str, ...]]

NO_VALUES: Final[Values] = MappingProxyType({})


class Reads(StrEnum):
    """All that an index function looks at."""

    HEADER = "header"
    SPEC = "spec"  # and name, namespace and UID


@dataclass(frozen=True, slots=True)
class Sparing:
    """An index function that does not look at the whole of an object."""

    function: IndexFunction
    reads: Reads

    def __call__(self, metadata: Metadata, body: JsonObject) -> Iterable[str]:
        return self.function(metadata, body)


def of_header(function: IndexFunction) -> Sparing:
    """A store that has only such decodes nothing."""
    return Sparing(function, Reads.HEADER)


def of_spec(function: IndexFunction) -> Sparing:
    """Where a store has only such, an object whose spec is the same is found under the same
    values, and is not read for them.
    """
    return Sparing(function, Reads.SPEC)


class Indexing:
    """The index functions of one store; `outline` has every member they look at, if not all."""

    def __init__(
        self, functions: Mapping[str, IndexFunction], outline: Outline | None = None
    ) -> None:
        self.names = tuple(functions)
        self.failures = 0
        self._functions = dict(functions)
        self._outline = outline
        self._needs_body = not self._all_read(Reads.HEADER)
        self._is_of_spec = self._all_read(Reads.SPEC)

    def _all_read(self, reads: Reads) -> bool:
        return all(
            isinstance(one, Sparing) and one.reads is reads for one in self._functions.values()
        )

    def evaluate(
        self, delivered: Delivered, before: Metadata | None, found_under: Values
    ) -> Values:
        """The values of an object that has arrived; `before`: its former version, if there is
        one, and what that was found under.
        """
        if not self._functions:
            return NO_VALUES  # and nobody has decoded the object
        metadata = delivered.snapshot.metadata
        if self._is_of_spec and before is not None and _has_same_spec(before, metadata):
            return found_under
        try:
            body = self._read(delivered) if self._needs_body else {}
        except UndecodableError:
            # Walked over, it looked sound (a number beyond all bounds): who reads it will say so;
            # the stream goes on.
            self.failures += 1
            return _seal(self.names, ((),) * len(self.names))
        return _seal(self.names, tuple([self._values(name, metadata, body) for name in self.names]))

    def outline(self, snapshot: Snapshot) -> bytes:
        """What is read of an object whose body is not kept."""
        return b"" if self._outline is None else self._outline.cut(snapshot)

    def _read(self, delivered: Delivered) -> JsonObject:
        if self._outline is None or delivered.decoded is not None:
            return delivered.body
        return self._outline.read(delivered.snapshot)

    def _values(self, name: str, metadata: Metadata, body: JsonObject) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(self._functions[name](metadata, body)))
        except (LookupError, TypeError, ValueError, AttributeError):
            self.failures += 1
            return ()


@lru_cache(maxsize=1024)
def _seal(names: tuple[str, ...], values: tuple[tuple[str, ...], ...]) -> Values:
    """Equal values once: the replicas of one deployment are found under the same."""
    return MappingProxyType(dict(zip(names, values, strict=True)))


def _has_same_spec(found: Metadata, arrived: Metadata) -> bool:
    """A generation counts the changes of a spec; a kind that counts none is always 0, and a plane
    that was restored from a backup counts some of them again.
    """
    is_counted = 0 < found.generation == arrived.generation and found.uid == arrived.uid
    return is_counted and parse_version(found.resource_version) < parse_version(
        arrived.resource_version
    )
