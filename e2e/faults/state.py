"""What planes held at the end of a run, derived from what they committed in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import orjson
from typing_extensions import override

from compute_api_types.wire import JsonObject
from compute_sim_planes.history import Commit, History


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """Where an object is."""

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


State: TypeAlias = dict[Spot, JsonObject]


def spot_of(commit: Commit) -> Spot:
    return Spot(commit.plane, commit.kind, commit.key)


def derive_state(history: History) -> State:
    """Every object that was there when the run ended."""
    last: dict[Spot, bytes] = {}
    for commit in history.of(Commit):
        if commit.after:
            last[spot_of(commit)] = commit.after
        else:
            last.pop(spot_of(commit), None)
    return {spot: orjson.loads(raw) for spot, raw in last.items()}


def of_kind(state: State, kind: str, plane: str = "") -> Iterator[tuple[Spot, JsonObject]]:
    """Objects of a kind, in order, on a plane or on all of them."""
    for spot in sorted(state):
        if spot.kind == kind and plane in {"", spot.plane}:
            yield spot, state[spot]
