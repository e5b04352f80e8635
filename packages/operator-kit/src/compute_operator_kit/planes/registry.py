"""The registry of planes (API servers): engaged and disengaged while the process runs.

An engaged plane has a client, flow control, a probe while its circuit breaker is open, and a store
and reflector per cached kind of its role. Planes share nothing but 16 slots for starting, and a
slot is freed after the first attempt to list: a plane that hangs neither delays nor ends another.
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
from typing import Final, TypeAlias

from compute_operator_kit.cache.body_retention import BodyRetention
from compute_operator_kit.cache.budget import PlaneUsageMeter, UsageMeter
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.lister import Change, Lister, ServingState
from compute_operator_kit.cache.reflector import Reflector, ReflectorDeps
from compute_operator_kit.cache.store import Store
from compute_operator_kit.client.flow_control import FlowControl, Limits
from compute_operator_kit.client.interface import EVERYTHING, KubeClient, Selector
from compute_operator_kit.client.rest import Credentials, NoCredentials
from compute_operator_kit.core import metrics as names
from compute_operator_kit.core.backoff import PLANE_BACKOFF
from compute_operator_kit.core.clock import ZERO, Clock, Random
from compute_operator_kit.core.errors import InvariantError, PlaneGoneError, ReconcileError
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics
from compute_operator_kit.core.partial_decoder import PartialDecoder
from compute_operator_kit.core.tasks import SupervisedTasks

STARTS_AT_ONCE: Final = 16  # management.md 9
START_WITHIN: Final = timedelta(seconds=30)
RESTART_AFTER: Final = timedelta(seconds=5)
# Probed where no kind is cached: every API server has namespaces.
_NAMESPACES: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
# Roles with one plane; planes of other roles are only counted in metrics (operations.md 6).
SINGLE_ROLES: Final = frozenset({Role.HOME, Role.ROOT, Role.HUB, Role.CELL})

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plane:
    """One API server: its name in this process, its role, its URL and our credentials."""

    name: PlaneName
    role: Role
    base_url: str = ""
    credentials: Credentials = field(default_factory=NoCredentials, compare=False)
    # Of the object it was discovered by: a deleted and recreated project is another plane.
    uid: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise InvariantError("describing a plane: no name")


@dataclass(frozen=True, slots=True)
class CachedKind:
    """A kind that is cached on every plane of a role."""

    role: Role
    kind: Kind
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict[str, IndexFunction])
    selector: Selector = EVERYTHING
    is_optional: bool = False  # if it is not served, no key waits for its cache
    # Decodes all members that the indexes read; None: the indexes read the whole object.
    decoder: PartialDecoder | None = None
    keeps_bodies: bool = True  # False: reconciles read only headers and index values of it


class PlaneState(StrEnum):
    """The state of a plane in metrics."""

    UP = "up"
    # Caches are complete; the last request failed, or bodies are left out of caches.
    DEGRADED = "degraded"
    DOWN = "down"  # does not answer, or its caches were never complete


ChangeHandler: TypeAlias = Callable[[Change], None]


class PlaneListener:
    """Callbacks for what happens on planes; a listener derives from it and overrides those it
    needs. A callback must neither raise nor wait: the reflector of the plane calls it.
    """

    def change_handler(self, role: Role, kind: Kind) -> ChangeHandler | None:  # noqa: ARG002
        """The function to call for every change of a kind, None for no call; called once per
        store, so that a change costs no lookup.
        """
        return None

    def synced(self, plane: Plane, kind: Kind) -> None:
        """The store of a kind is complete, or the kind is known not to be served."""

    def recovered(self, plane: Plane) -> None:
        """The circuit breaker closed: parked keys may be reconciled again."""

    def disengaged(self, plane: Plane) -> None:
        """The plane is not served any more; its stores are gone."""


def join_handlers(handlers: Iterable[ChangeHandler | None]) -> ChangeHandler:
    """One handler that calls all of them in order; a single one is returned as it is."""
    present = tuple(handler for handler in handlers if handler is not None)
    if len(present) == 1:
        return present[0]

    def handle_change(change: Change) -> None:
        for handler in present:
            handler(change)

    return handle_change


Connect: TypeAlias = Callable[[Plane, FlowControl], KubeClient]
# The meter that the caches of a plane are charged to; None: no limit.
FindMeter: TypeAlias = Callable[[Plane], UsageMeter | None]
OVER_BUDGET: Final = "OverBudget"


def measure_nothing(_: Plane) -> UsageMeter | None:
    return None


@dataclass(frozen=True, slots=True)
class RegistryDeps:
    """Dependencies of the registry."""

    clock: Clock
    random: Random
    measures: MetricsPort = field(default_factory=NoMetrics)
    limits: Limits = field(default_factory=Limits)
    find_meter: FindMeter = measure_nothing


class EngagedPlane:
    """A plane with its client, flow control, stores and tasks."""

    def __init__(
        self,
        plane: Plane,
        lane: FlowControl,
        kube: KubeClient,
        watched: Iterable[CachedKind],
        meter: UsageMeter | None = None,
    ) -> None:
        self.plane = plane
        self.lane = lane
        self.kube = kube
        self.watched = {item.kind: item for item in watched}
        self._meter = meter
        self.stores = {kind: self._store(item) for kind, item in self.watched.items()}
        self.usable = asyncio.Event()
        self.usable.set()
        self.tasks = SupervisedTasks(plane.name)

    def _store(self, item: CachedKind) -> Store:
        meter = self._meter
        keeping = None if meter is None else BodyRetention(meter, bodies=item.keeps_bodies)
        return Store(self.plane.name, item.kind, item.indexes, item.decoder, keeping)

    @property
    def limit(self) -> str:
        """The limit that the plane exceeds (a list or its cache budget); "" for none."""
        refused = next((store.refusal for store in self.stores.values() if store.refusal), "")
        if refused or not isinstance(self._meter, PlaneUsageMeter):
            return refused
        return OVER_BUDGET if self._meter.account.is_over else ""

    @property
    def is_synced(self) -> bool:
        """Whether all caches of the plane are complete, or of an optional kind not served."""
        return all(self.is_known(kind) for kind in self.stores)

    def is_known(self, kind: Kind) -> bool:
        """Whether the store is complete, or of an optional kind that is not served."""
        store = self.stores[kind]
        is_missing = store.serving is ServingState.NOT_SERVED
        return store.is_synced or (is_missing and self.watched[kind].is_optional)

    @property
    def state(self) -> PlaneState:
        if self.lane.is_open or not self.is_synced:
            return PlaneState.DOWN
        return PlaneState.UP if self.lane.is_up and not self.limit else PlaneState.DEGRADED


class Planes:
    """Engaged planes by name and role; the `Caches` of all controllers."""

    def __init__(self, connect: Connect, watched: Iterable[CachedKind], deps: RegistryDeps) -> None:
        self._connect = connect
        self._cached_kinds = tuple(watched)
        self._deps = deps
        self._engaged: dict[PlaneName, EngagedPlane] = {}
        self._by_role: dict[Role, dict[PlaneName, EngagedPlane]] = {role: {} for role in Role}
        self._sorted: dict[Role, tuple[PlaneName, ...]] = {}  # until a plane comes or goes
        self._listeners: list[PlaneListener] = []
        self._start_slots = asyncio.Semaphore(STARTS_AT_ONCE)
        self.starting = 0  # planes before the first attempt of their lists
        self._states: dict[PlaneName, PlaneState] = {}
        self._counts: dict[Role, Counter[PlaneState]] = {}

    def listen(self, listener: PlaneListener) -> None:
        self._listeners.append(listener)

    # lookup ----------------------------------------------------------------------------------

    def find(self, name: PlaneName) -> EngagedPlane | None:
        return self._engaged.get(name)

    def get(self, name: PlaneName) -> EngagedPlane:
        engaged = self._engaged.get(name)
        if engaged is None:
            message = f"looking up plane {name!r}: it is not engaged"
            raise PlaneGoneError("PlaneGone", message, plane=name)
        return engaged

    def planes(self, role: Role) -> tuple[PlaneName, ...]:
        # Mapping functions call it for every change on the hub, and there are thousands of planes.
        names_of_role = self._sorted.get(role)
        if names_of_role is None:
            names_of_role = self._sorted[role] = tuple(sorted(self._by_role[role]))
        return names_of_role

    def engaged(self, role: Role) -> Collection[EngagedPlane]:
        return self._by_role[role].values()

    def lister(self, plane: PlaneName, kind: Kind) -> Lister:
        store = self.get(plane).stores.get(kind)
        if store is None:
            raise InvariantError(f"reading {kind.kind} on {plane!r}: it is not watched there")
        return store

    def find_store(self, plane: PlaneName, kind: Kind) -> Store | None:
        engaged = self._engaged.get(plane)
        return engaged.stores.get(kind) if engaged else None

    # engage and disengage --------------------------------------------------------------------

    def engage(self, plane: Plane) -> EngagedPlane:
        """Begins to serve a plane and returns at once; a plane that is engaged is returned."""
        existing = self._engaged.get(plane.name)
        if existing is not None:
            if existing.plane != plane:
                raise InvariantError(f"engaging plane {plane.name!r}: another one has that name")
            return existing
        lane = FlowControl(plane.name, self._deps.clock, self._deps.limits)
        kinds = [item for item in self._cached_kinds if item.role is plane.role]
        meter = self._deps.find_meter(plane)
        engaged = EngagedPlane(plane, lane, self._connect(plane, lane), kinds, meter)
        self._engaged[plane.name] = self._by_role[plane.role][plane.name] = engaged
        self._sorted.pop(plane.role, None)
        lane.listen(lambda: self._on_lane(engaged))
        engaged.tasks.start(self._start(engaged), "start")
        self._report(engaged)
        logger.info("Engaging plane", extra={"plane": plane.name, "role": plane.role.value})
        return engaged

    async def disengage(self, name: PlaneName) -> None:
        """Ends serving a plane: when this returns, its watches are closed and caches dropped."""
        engaged = self._engaged.pop(name, None)
        if engaged is None:
            return
        del self._by_role[engaged.plane.role][name]
        self._sorted.pop(engaged.plane.role, None)
        logger.info("Disengaging plane", extra={"plane": name})
        await engaged.tasks.stop()
        engaged.lane.mute()
        for listener in tuple(self._listeners):
            listener.disengaged(engaged.plane)
        self._report(engaged)

    async def close(self) -> None:
        """Disengages all planes."""
        await asyncio.gather(*(self.disengage(name) for name in tuple(self._engaged)))

    # reflectors and probes -------------------------------------------------------------------

    async def _start(self, engaged: EngagedPlane) -> None:
        """Starts the reflectors of a plane, holding a start slot until each has tried to list."""
        reflectors = [self._reflector(engaged, item) for item in engaged.watched.values()]
        self.starting += 1
        try:
            async with self._start_slots:
                for reflector in reflectors:
                    self._run(engaged, reflector)
                attempts = [reflector.attempted.wait() for reflector in reflectors]
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(START_WITHIN.total_seconds()):
                        await asyncio.gather(*attempts)
        finally:
            self.starting -= 1

    def _run(self, engaged: EngagedPlane, reflector: Reflector, delay: timedelta = ZERO) -> None:
        async def run() -> None:
            await self._deps.clock.sleep(delay)
            await reflector.run(engaged.usable)

        def again() -> None:
            self._run(engaged, reflector, RESTART_AFTER)

        engaged.tasks.start(run(), reflector.store.kind.kind, on_crash=again)

    def _reflector(self, engaged: EngagedPlane, item: CachedKind) -> Reflector:
        handlers = (one.change_handler(engaged.plane.role, item.kind) for one in self._listeners)
        deps = ReflectorDeps(
            clock=self._deps.clock,
            random=self._deps.random,
            measures=self._deps.measures,
            selector=item.selector,
            on_change=join_handlers(handlers),
            on_synced=lambda: self._on_synced(engaged, item.kind),
        )
        return Reflector(engaged.kube, engaged.plane.role, engaged.stores[item.kind], deps)

    def _on_synced(self, engaged: EngagedPlane, kind: Kind) -> None:
        for listener in tuple(self._listeners):
            listener.synced(engaged.plane, kind)
        self._report(engaged)

    def _on_lane(self, engaged: EngagedPlane) -> None:
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

    def _start_probe(self, engaged: EngagedPlane, delay: timedelta = ZERO) -> None:
        """Probes a plane with an open breaker, which gets no other request: a probe that crashed is
        started again, or the plane would stay down until the process restarts.
        """

        async def probe() -> None:
            await self._deps.clock.sleep(delay)
            await self._probe(engaged)

        def again() -> None:
            self._start_probe(engaged, RESTART_AFTER)

        engaged.tasks.start(probe(), "probe", on_crash=again)

    async def _probe(self, engaged: EngagedPlane) -> None:
        """Sends one request at a time with growing waits, until the plane answers."""
        kind = next(iter(engaged.stores), _NAMESPACES)
        attempt = 0
        while engaged.lane.is_open:
            attempt += 1
            chance = self._deps.random.random()
            await self._deps.clock.sleep(PLANE_BACKOFF.delay(attempt, chance))
            # The flow control counts and reports the failure.
            with contextlib.suppress(ReconcileError):
                await engaged.kube.probe(kind)

    def report_limits(self) -> None:
        """Updates the metrics of planes that crossed their cache budget; called every few seconds,
        because the usage changes with every event.
        """
        for engaged in tuple(self._engaged.values()):
            if engaged.plane.role not in SINGLE_ROLES:
                self._report(engaged)

    def _report(self, engaged: EngagedPlane) -> None:
        """Updates the metrics for a change of one plane, without counting all planes again: five
        hundred planes that start change a thousand times.
        """
        role = engaged.plane.role
        if role in SINGLE_ROLES:
            planes = self._by_role[role].values()
            is_up = bool(planes) and all(one.lane.is_up for one in planes)
            self._deps.measures.gauge(names.PLANE_UP, float(is_up), plane=role.value)
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
            for state in PlaneState:
                self._deps.measures.gauge(
                    names.PLANES, counts[state], plane=role.value, state=state.value
                )
