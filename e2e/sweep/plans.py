"""Fault plans of a scenario: each fault of `docs/spec/faults.md` 1.3 at each point that is left.

Where the large size of a scenario repeats a point for another slot, city or project, the first and
the last of them are run: the others differ in names only. A run of half an hour takes of the large
size one point of each class that the small size lacks.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from compute_sim_planes.faults.plans import (
    Action,
    Fault,
    FaultPlan,
    Parameters,
    default_fault,
)
from compute_sim_planes.history import History
from e2e.sweep.points import StrikePoint, find_events, find_writes, locate

SEED: Final = 1
# Seconds for which an event is held, or until the watch is listed again.
HELD: Final = timedelta(seconds=10)
WRITE_FAULTS: Final = ("A1", "A2", "C1", "C8", "C5")
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"\d+")
_CITY: Final = re.compile(r"\b(dfw|ord)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StruckPoint:
    """A plan of one fault, and the point of the recording that it strikes."""

    point: StrikePoint
    fault: Fault


@dataclass(frozen=True, slots=True)
class StruckPair:
    """A plan of two faults; the second is found by its kind, as the first changes names."""

    first: StruckPoint
    second: Fault


def derive_faults(points: Sequence[StrikePoint], history: History, since: int) -> list[StruckPoint]:
    """All single faults from the point with this number on, after pruning."""
    scenario_points = [point for point in points if point.number >= since]
    writes = find_writes(scenario_points, history)
    events = find_events(scenario_points, writes)
    faults = [struck for point in writes for struck in _of_write(points, point)]
    faults += [struck for point in events for struck in _of_event(points, point)]
    return faults


def _of_write(points: Sequence[StrikePoint], point: StrikePoint) -> Iterator[StruckPoint]:
    at = locate(points, point)
    for fault_id in WRITE_FAULTS:
        yield StruckPoint(point, default_fault(fault_id, at))


def _of_event(points: Sequence[StrikePoint], point: StrikePoint) -> Iterator[StruckPoint]:
    at = locate(points, point)
    held = Parameters(delay=HELD)
    stale = default_fault("B5", at)
    faults = (
        Fault("B1", Action.DROP_UNTIL_RELIST, at, held),
        default_fault("B3", at),
        Fault("B4", Action.DELAY_PAST_NEXT, at, held),
        default_fault("B4", at),
        stale,
        replace(stale, parameters=replace(stale.parameters, count=0)),
    )
    for fault in faults:
        yield StruckPoint(point, fault)


def thin(faults: Sequence[StruckPoint]) -> list[StruckPoint]:
    """The first and the last of the faults that differ in slot, city, project or UID only."""
    classes: dict[tuple[object, ...], list[StruckPoint]] = {}
    for struck in faults:
        classes.setdefault((*_class_of(struck), struck.fault.at.nth), []).append(struck)
    kept = {id(one) for members in classes.values() for one in (members[0], members[-1])}
    return [struck for struck in faults if id(struck) in kept]


def without_known(faults: Sequence[StruckPoint], known: Sequence[StruckPoint]) -> list[StruckPoint]:
    """The last fault of each class that the known ones lack; how often a point came is no class."""
    last = {_class_of(struck): struck for struck in faults}
    for struck in known:
        last.pop(_class_of(struck), None)
    kept = {id(struck) for struck in last.values()}
    return [struck for struck in faults if id(struck) in kept]


def _class_of(struck: StruckPoint) -> tuple[object, ...]:
    address, fault = struck.point.address, struck.fault
    key = _NUMBER.sub("#", _CITY.sub("city", _UID.sub("uid", address.key)))
    side = _NUMBER.sub("#", struck.point.process.partition("-")[0])
    role = "project" if address.namespace == "shop" else address.plane
    role = "cell" if role.startswith(("dfw", "ord")) else role
    reader = "cell" if side in {"dfw", "ord"} else side
    return (fault.id, fault.action, fault.parameters, role, reader, address.verb, address.kind,
            address.subresource, key)  # fmt: skip


def sample_pairs(
    points: Sequence[StrikePoint], faults: Sequence[StruckPoint], count: int, seed: int
) -> list[StruckPair]:
    """A seeded sample of two faults, the second after the first."""
    chance = random.Random(f"{seed}/pairs")  # noqa: S311 -- nothing secret
    pairs: list[StruckPair] = []
    if len(faults) < 2:
        return pairs
    while len(pairs) < count:
        first, second = chance.sample(faults, 2)
        if first.point.number > second.point.number:
            first, second = second, first
        if first.point.number == second.point.number:
            continue
        at = locate(points, second.point, has_key=False)
        pairs.append(StruckPair(first, replace(second.fault, at=at)))
    return pairs


def plan_of(scenario: str, *faults: Fault, oracles: tuple[str, ...] = ()) -> FaultPlan:
    return FaultPlan(scenario, SEED, faults, oracles)
