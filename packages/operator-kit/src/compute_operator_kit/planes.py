"""The planes this process serves: engaged and disengaged while it runs, each on its own.

An engaged plane has a client, a store and a reflector per kind that is watched on planes of its
role, a lane that knows its health, and a probe while its breaker is open. Planes share nothing but
the 16 places for starting, and a place is given back after the first attempt: a bad plane neither
delays nor ends another. What controllers do with all this is `reconcile.py`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from compute_operator_kit import measures as names
from compute_operator_kit.backoff import PLANE_BACKOFF
from compute_operator_kit.budget import Meter, PlaneMeter
from compute_operator_kit.cache import Change, Serving, Store, View
from compute_operator_kit.clock import ZERO, Clock, Random
from compute_operator_kit.crew import Crew
from compute_operator_kit.errors import InvariantError, PlaneGoneError, ReconcileError
from compute_operator_kit.exchange import Credentials, NoCredentials
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.keeping import Keeping
from compute_operator_kit.keys import Kind, PlaneName, Role
from compute_operator_kit.kube import EVERYTHING, Kube, Selector
from compute_operator_kit.lane import Lane, Limits
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.outline import Outline
from compute_operator_kit.reflector import Reflector, Surroundings

STARTS_AT_ONCE: Final = 16  # management.md 9
START_WITHIN: Final = timedelta(seconds=30)
RESTART_AFTER: Final = timedelta(seconds=5)
# Every API server has namespaces: what a probe asks for where no kind is watched.
_NAMESPACES: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
# Planes of these roles exist once; the others are only counted (operations.md 6).
SINGLE_ROLES: Final = frozenset({Role.HOME, Role.ROOT, Role.HUB, Role.CELL})

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plane:
    """One control plane: what it is called here, what it is for, where it is, and who we
    are to it.
    """

    name: PlaneName
    role: Role
    base_url: str = ""
    credentials: Credentials = field(default_factory=NoCredentials, compare=False)
    uid: str = (
        ""  # of the object it was discovered by: the same name may come back as another plane
    )

    def __post_init__(self) -> None:
        if not self.name:
            raise InvariantError("describing a plane: no name")


@dataclass(frozen=True, slots=True)
class Watched:
    """A kind that is cached on every plane of a role."""

    role: Role
    kind: Kind
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict[str, IndexFunction])
    selector: Selector = EVERYTHING
    is_optional: bool = False  # not served counts as known: nothing waits for it
    outline: Outline | None = None  # every member that its indexes look at; None: the whole object
    keeps_bodies: bool = True  # False: passes read no more of it than headers and index values


class State(StrEnum):
    """How a plane is doing."""

    UP = "up"
    # Caches are complete; the last exchange failed, or bodies are left out for want of room.
    DEGRADED = "degraded"
    DOWN = "down"  # does not answer, or was never seen whole


class Listener(Protocol):
    """Who wants to know what happens on planes; none of these may raise or wait."""

    def teller(self, role: Role, kind: Kind) -> Callable[[Change], None]:
        """Whom to call for every change of a kind; asked once per store, because changes
        are many.
        """
        ...

    def synced(self, plane: Plane, kind: Kind) -> None:
        """The store of a kind is complete, or the kind is known not to be served."""
        ...

    def recovered(self, plane: Plane) -> None:
        """The breaker closed: what was parked may go on."""
        ...

    def disengaged(self, plane: Plane) -> None: ...


Connect: TypeAlias = Callable[[Plane, Lane], Kube]
# What the caches of a plane are charged to; None: they may hold whatever there is.
FindMeter: TypeAlias = Callable[[Plane], Meter | None]
OVER_BUDGET: Final = "OverBudget"


def measure_nothing(_: Plane) -> Meter | None:
    return None


@dataclass(frozen=True, slots=True)
class Setting:
    """What planes run in."""

    clock: Clock
    random: Random
    measures: Measures = field(default_factory=NoMeasures)
    limits: Limits = field(default_factory=Limits)
    find_meter: FindMeter = measure_nothing


class Engaged:
    """One plane at work."""

    def __init__(
        self,
        plane: Plane,
        lane: Lane,
        kube: Kube,
        watched: Iterable[Watched],
        meter: Meter | None = None,
    ) -> None:
        self.plane = plane
        self.lane = lane
        self.kube = kube
        self.watched = {item.kind: item for item in watched}
        self._meter = meter
        self.stores = {kind: self._store(item) for kind, item in self.watched.items()}
        self.usable = asyncio.Event()
        self.usable.set()
        self.crew = Crew(plane.name)

    def _store(self, item: Watched) -> Store:
        meter = self._meter
        keeping = None if meter is None else Keeping(meter, bodies=item.keeps_bodies)
        return Store(self.plane.name, item.kind, item.indexes, item.outline, keeping)

    @property
    def limit(self) -> str:
        """What of the plane is more than is taken of one; "" where nothing is."""
        refused = next((store.refusal for store in self.stores.values() if store.refusal), "")
        if refused or not isinstance(self._meter, PlaneMeter):
            return refused
        return OVER_BUDGET if self._meter.account.is_over else ""

    @property
    def is_synced(self) -> bool:
        """Nothing that is watched here is unknown."""
        return all(self.is_known(kind) for kind in self.stores)

    def is_known(self, kind: Kind) -> bool:
        """The store may be acted upon: complete, or of a kind that need not exist and does not."""
        store = self.stores[kind]
        is_missing = store.serving is Serving.NOT_SERVED
        return store.is_synced or (is_missing and self.watched[kind].is_optional)

    @property
    def state(self) -> State:
        if self.lane.is_open or not self.is_synced:
            return State.DOWN
        return State.UP if self.lane.is_up and not self.limit else State.DEGRADED


class Planes:
    """The registry."""

    def __init__(self, connect: Connect, watched: Iterable[Watched], setting: Setting) -> None:
        self._connect = connect
        self._watched = tuple(watched)
        self._setting = setting
        self._engaged: dict[PlaneName, Engaged] = {}
        self._by_role: dict[Role, dict[PlaneName, Engaged]] = {role: {} for role in Role}
        self._sorted: dict[Role, tuple[PlaneName, ...]] = {}  # until one comes or goes
        self._listeners: list[Listener] = []
        self._starts = asyncio.Semaphore(STARTS_AT_ONCE)
        self.starting = 0  # planes whose first lists have not been attempted
        self._states: dict[PlaneName, State] = {}
        self._counts: dict[Role, Counter[State]] = {}

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    # asking ----------------------------------------------------------------------------------

    def find(self, name: PlaneName) -> Engaged | None:
        return self._engaged.get(name)

    def get(self, name: PlaneName) -> Engaged:
        found = self._engaged.get(name)
        if found is None:
            message = f"looking up plane {name!r}: it is not engaged"
            raise PlaneGoneError("PlaneGone", message, plane=name)
        return found

    def planes(self, role: Role) -> tuple[PlaneName, ...]:
        # Asked by mapping functions for every change on the hub, and there are thousands of planes.
        found = self._sorted.get(role)
        if found is None:
            found = self._sorted[role] = tuple(sorted(self._by_role[role]))
        return found

    def engaged(self, role: Role) -> Collection[Engaged]:
        return self._by_role[role].values()

    def view(self, plane: PlaneName, kind: Kind) -> View:
        store = self.get(plane).stores.get(kind)
        if store is None:
            raise InvariantError(f"reading {kind.kind} on {plane!r}: it is not watched there")
        return store

    def find_store(self, plane: PlaneName, kind: Kind) -> Store | None:
        found = self._engaged.get(plane)
        return found.stores.get(kind) if found else None

    # changing --------------------------------------------------------------------------------

    def engage(self, plane: Plane) -> Engaged:
        """Begins to serve a plane and returns at once; the same plane twice is the first
        one still.
        """
        found = self._engaged.get(plane.name)
        if found is not None:
            if found.plane != plane:
                raise InvariantError(f"engaging plane {plane.name!r}: another one has that name")
            return found
        lane = Lane(plane.name, self._setting.clock, self._setting.limits)
        kinds = [item for item in self._watched if item.role is plane.role]
        meter = self._setting.find_meter(plane)
        engaged = Engaged(plane, lane, self._connect(plane, lane), kinds, meter)
        self._engaged[plane.name] = self._by_role[plane.role][plane.name] = engaged
        self._sorted.pop(plane.role, None)
        lane.listen(lambda: self._on_lane(engaged))
        engaged.crew.start(self._start(engaged), "start")
        self._report(engaged)
        logger.info("Engaging plane", extra={"plane": plane.name, "role": plane.role.value})
        return engaged

    async def disengage(self, name: PlaneName) -> None:
        """Ends serving a plane: its watches are closed and its caches dropped when this returns."""
        engaged = self._engaged.pop(name, None)
        if engaged is None:
            return
        del self._by_role[engaged.plane.role][name]
        self._sorted.pop(engaged.plane.role, None)
        logger.info("Disengaging plane", extra={"plane": name})
        await engaged.crew.stop()
        engaged.lane.mute()
        for listener in tuple(self._listeners):
            listener.disengaged(engaged.plane)
        self._report(engaged)

    async def close(self) -> None:
        """Disengages all planes."""
        await asyncio.gather(*(self.disengage(name) for name in tuple(self._engaged)))

    # serving ---------------------------------------------------------------------------------

    async def _start(self, engaged: Engaged) -> None:
        """Starts the reflectors, at most so many planes at a time; the place is held for
        one attempt.
        """
        reflectors = [self._reflector(engaged, item) for item in engaged.watched.values()]
        self.starting += 1
        try:
            async with self._starts:
                for reflector in reflectors:
                    self._run(engaged, reflector)
                attempts = [reflector.attempted.wait() for reflector in reflectors]
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(START_WITHIN.total_seconds()):
                        await asyncio.gather(*attempts)
        finally:
            self.starting -= 1

    def _run(self, engaged: Engaged, reflector: Reflector, delay: timedelta = ZERO) -> None:
        async def run() -> None:
            await self._setting.clock.sleep(delay)
            await reflector.run(engaged.usable)

        def again() -> None:
            self._run(engaged, reflector, RESTART_AFTER)

        engaged.crew.start(run(), reflector.store.kind.kind, on_crash=again)

    def _reflector(self, engaged: Engaged, item: Watched) -> Reflector:
        around = Surroundings(
            clock=self._setting.clock,
            random=self._setting.random,
            measures=self._setting.measures,
            selector=item.selector,
            tell=self._teller(engaged.plane.role, item.kind),
            tell_synced=lambda: self._on_synced(engaged, item.kind),
        )
        return Reflector(engaged.kube, engaged.plane.role, engaged.stores[item.kind], around)

    def _teller(self, role: Role, kind: Kind) -> Callable[[Change], None]:
        tellers = [listener.teller(role, kind) for listener in self._listeners]
        if len(tellers) == 1:
            return tellers[0]

        def tell(change: Change) -> None:
            for teller in tellers:
                teller(change)

        return tell

    def _on_synced(self, engaged: Engaged, kind: Kind) -> None:
        for listener in tuple(self._listeners):
            listener.synced(engaged.plane, kind)
        self._report(engaged)

    def _on_lane(self, engaged: Engaged) -> None:
        self._report(engaged)
        if engaged.lane.is_open and engaged.usable.is_set():
            logger.warning("Plane does not answer", extra={"plane": engaged.plane.name})
            engaged.usable.clear()
            self._start_probe(engaged)
        elif not engaged.lane.is_open and not engaged.usable.is_set():
            logger.info("Plane answers again", extra={"plane": engaged.plane.name})
            engaged.usable.set()
            for listener in tuple(self._listeners):
                listener.recovered(engaged.plane)

    def _start_probe(self, engaged: Engaged, delay: timedelta = ZERO) -> None:
        """Nothing else asks a plane whose breaker is open: a probe that crashed is started again,
        or the plane would stay down until a restart.
        """

        async def probe() -> None:
            await self._setting.clock.sleep(delay)
            await self._probe(engaged)

        def again() -> None:
            self._start_probe(engaged, RESTART_AFTER)

        engaged.crew.start(probe(), "probe", on_crash=again)

    async def _probe(self, engaged: Engaged) -> None:
        """One question at a time, ever more seldom, until the plane answers; then nobody probes."""
        kind = next(iter(engaged.stores), _NAMESPACES)
        attempt = 0
        while engaged.lane.is_open:
            attempt += 1
            chance = self._setting.random.random()
            await self._setting.clock.sleep(PLANE_BACKOFF.delay(attempt, chance))
            # Its failures are what the lane counts and reports: nothing to add here.
            with contextlib.suppress(ReconcileError):
                await engaged.kube.probe(kind)

    def report_limits(self) -> None:
        """For planes whose caches came over their budget, or back under it, since they were last
        looked at; every few seconds, because accounts change with every event.
        """
        for engaged in tuple(self._engaged.values()):
            if engaged.plane.role not in SINGLE_ROLES:
                self._report(engaged)

    def _report(self, engaged: Engaged) -> None:
        """One plane is not as it was: five hundred that start tell of it some thousand times."""
        role = engaged.plane.role
        if role in SINGLE_ROLES:
            found = self._by_role[role].values()
            is_up = bool(found) and all(one.lane.is_up for one in found)
            self._setting.measures.gauge(names.PLANE_UP, float(is_up), plane=role.value)
            return
        counts, name = self._counts.setdefault(role, Counter()), engaged.plane.name
        is_engaged = self._engaged.get(name) is engaged
        before, after = self._states.pop(name, None), engaged.state if is_engaged else None
        if before is not None:
            counts[before] -= 1
        if after is not None:
            counts[after] += 1
            self._states[name] = after
        if before is not after:
            for state in State:
                self._setting.measures.gauge(
                    names.PLANES, counts[state], plane=role.value, state=state.value
                )
