"""Points where a fault can strike: the requests and watch events of a recorded run, numbered.

A run is a function of its seed, so the nth request of the recording is the nth request of every
run until the fault. An injector that counts them can therefore strike one of them in a later run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from typing_extensions import override

from compute_sim_planes.faults.injection import Injector, is_at
from compute_sim_planes.faults.plans import EVENT_ACTIONS, Fault, Point
from compute_sim_planes.history import History, Request, current_request
from compute_sim_planes.request_address import Address
from compute_sim_planes.time.clock import VirtualClock

# Records of events and leadership: no state of ours is derived from them.
IGNORED_KINDS: Final = frozenset({"Event", "Lease"})
# A reconcile follows its event within milliseconds; a deferred write after up to 200 ms.
CAUSED_WITHIN: Final = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class StrikePoint:
    """One request or watch event of a run, in order."""

    number: int
    at: datetime
    process: str
    address: Address
    is_event: bool
    request: int | None  # in the history

    @property
    def is_write(self) -> bool:
        return not self.is_event and self.address.is_write


# Called with each point before it passes; returns the fault that strikes it.
Strike = Callable[[StrikePoint], Fault | None]


def strike_nothing(_: StrikePoint) -> Fault | None:
    return None


class PointRecorder(Injector):
    """An injector that numbers all points; `strike` may choose one by its number."""

    def __init__(self, faults: tuple[Fault, ...], clock: VirtualClock, history: History) -> None:
        super().__init__(faults, clock, history)
        self._now = clock.now
        self.points: list[StrikePoint] = []
        self.strike: Strike = strike_nothing

    @override
    def match_request(self, address: Address, process: str = "") -> Fault | None:
        chosen = self._choose(address, process, is_event=False)
        return chosen or super().match_request(address, process)

    @override
    def match_event(self, address: Address, process: str = "") -> Fault | None:
        chosen = self._choose(address, process, is_event=True)
        return chosen or super().match_event(address, process)

    def _choose(self, address: Address, process: str, *, is_event: bool) -> Fault | None:
        number = len(self.points)
        request = None if is_event else current_request()
        point = StrikePoint(number, self._now(), process, address, is_event, request)
        self.points.append(point)
        fault = self.strike(point)
        if fault is not None:
            self.record_injected(fault, address)
        return fault


def locate(points: Sequence[StrikePoint], point: StrikePoint, *, has_key: bool = True) -> Point:
    """The point in the form of a plan file, counted from the start of the run.

    Without its key it is found again in a run that another fault has changed before: names of hub
    namespaces carry UIDs, which are assigned in the order of events.
    """
    address = point.address
    place = Point(
        plane=address.plane,
        verb=address.verb,
        kind=address.kind,
        key=address.key if has_key else "",
        subresource=address.subresource,
    )
    same = sum(
        1 for one in points[: point.number + 1] if _is_at(place, one, is_event=point.is_event)
    )
    return Point(place.plane, place.verb, place.kind, place.key, place.subresource, same)


def _is_at(place: Point, point: StrikePoint, *, is_event: bool) -> bool:
    address = point.address
    return (
        point.is_event == is_event
        and (address.plane, address.verb, address.kind) == (place.plane, place.verb, place.kind)
        and address.subresource == place.subresource
        and place.key in {"", address.key}
    )


def count_matches(points: Sequence[StrikePoint], fault: Fault) -> int:
    """How often the point of a plan file came in a recorded run."""
    is_event = fault.action in EVENT_ACTIONS
    return sum(one.is_event == is_event and is_at(fault.at, one.address) for one in points)


# --- pruning --------------------------------------------------------------------------------------


def find_writes(points: Iterable[StrikePoint], history: History) -> list[StrikePoint]:
    """Writes that changed an object; others are no-ops or were refused."""
    effective = {
        one.number
        for one in history.of(Request)
        if any(commit.before != commit.after for commit in one.commits)
    }
    return [
        point
        for point in points
        if point.is_write and point.address.kind not in IGNORED_KINDS and point.request in effective
    ]


def find_events(points: Sequence[StrikePoint], writes: Sequence[StrikePoint]) -> list[StrikePoint]:
    """Events after which the process that received them wrote about the same objects."""
    return [
        point
        for point in points
        if point.is_event
        and point.address.kind not in IGNORED_KINDS
        and any(_is_caused(point, write) for write in writes)
    ]


def _is_caused(event: StrikePoint, write: StrikePoint) -> bool:
    is_soon = event.number < write.number and write.at - event.at <= CAUSED_WITHIN
    if not is_soon or event.process != write.process:
        return False
    stems = (_stem(event.address.name), _stem(write.address.name))
    is_cluster_wide = "" in {event.address.namespace, write.address.namespace}
    return is_cluster_wide or stems[0].startswith(stems[1]) or stems[1].startswith(stems[0])


def _stem(name: str) -> str:
    """A name without the prefix of its claim: names of children begin with those of parents."""
    return name.removeprefix("instance-")
