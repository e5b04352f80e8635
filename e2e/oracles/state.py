"""The objects on all planes at the end of a run, derived from the recorded commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import orjson
from typing_extensions import override

from compute_api_types.wire import JsonObject
from compute_sim_planes.history import Commit, History

# Most bytes of a run; the same ones in every run.
DEFINITION: Final = "CustomResourceDefinition"


@dataclass(frozen=True, slots=True, order=True)
class ObjectLocation:
    """Plane, kind and key of an object."""

    plane: str
    kind: str
    key: str  # namespace/name, or the name

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @override
    def __str__(self) -> str:
        return f"{self.plane} {self.kind} {self.key}"


State: TypeAlias = dict[ObjectLocation, JsonObject]


def location_of(commit: Commit) -> ObjectLocation:
    return ObjectLocation(commit.plane, commit.kind, commit.key)


def derive_state(history: History) -> State:
    """Every object that existed when the run ended."""
    return {location: _decode(location, raw) for location, raw in derive_bytes(history).items()}


def derive_bytes(history: History) -> dict[ObjectLocation, bytes]:
    """The same, as stored."""
    last: dict[ObjectLocation, bytes] = {}
    for commit in history.of(Commit):
        if commit.after:
            last[location_of(commit)] = commit.after
        else:
            last.pop(location_of(commit), None)
    return last


def _decode(location: ObjectLocation, raw: bytes) -> JsonObject:
    document: JsonObject = (
        decode_definition(raw) if location.kind == DEFINITION else orjson.loads(raw)
    )
    return document


@lru_cache(maxsize=512)
def decode_definition(raw: bytes) -> JsonObject:
    """A CRD, decoded once per process; read only."""
    document: JsonObject = orjson.loads(raw)
    return document


def of_kind(
    state: State, kind: str, plane: str = ""
) -> Iterator[tuple[ObjectLocation, JsonObject]]:
    """Objects of a kind, sorted, on one plane or on all."""
    for location in sorted(state):
        if location.kind == kind and plane in {"", location.plane}:
            yield location, state[location]
