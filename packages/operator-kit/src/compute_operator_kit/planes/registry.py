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
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeAlias

from compute_operator_kit.cache.budget import UsageMeter
from compute_operator_kit.cache.closed_lister import ClosedLister
from compute_operator_kit.cache.lister import Change, Lister
from compute_operator_kit.cache.reflector import Reflector, ReflectorDeps
from compute_operator_kit.cache.store import Store
from compute_operator_kit.client.flow_control import FlowControl, Limits
from compute_operator_kit.client.interface import KubeClient
from compute_operator_kit.core import metrics as names
from compute_operator_kit.core.clock import ZERO, Clock, Random
from compute_operator_kit.core.errors import InvariantError, PlaneGoneError
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics
from compute_operator_kit.planes.engaged_plane import (
    CachedKind,
    EngagedPlane,
    Plane,
    PlaneState,
)
from compute_operator_kit.planes.kinds_on_demand import KindsOnDemand, OnDemandHooks
from compute_operator_kit.planes.probes import RESTART_AFTER, PlaneProbes

STARTS_AT_ONCE: Final = 16  # management.md 9
START_WITHIN: Final = timedelta(seconds=30)
# Probed where no kind is cached: every API server has namespaces.
_NAMESPACES: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
# Roles with one plane; planes of other roles are only counted in metrics (operations.md 6).
SINGLE_ROLES: Final = frozenset({Role.HOME, Role.ROOT, Role.HUB, Role.CELL})

logger = logging.getLogger(__name__)


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

    def opened(self, plane: Plane, kind: Kind) -> None:
        """A kind on demand is watched from now on; `synced` follows, or `attempted` alone."""

    def attempted(self, plane: Plane, kind: Kind) -> None:
        """The first list of a kind on demand failed, or takes long: it is retried, and keys that
        can be reconciled without it need not wait.
        """

    def closed(self, plane: Plane, kind: Kind) -> None:
        """A kind on demand is not watched any more; its store is gone."""

    def recovered(self, plane: Plane) -> None:
        """The circuit breaker closed: parked keys may be reconciled again."""

    def write_permitted(self, plane: Plane) -> None:
        """The suspended project of the plane may get one write: does it still refuse?"""

    def resumed(self, plane: Plane) -> None:
        """The project accepts writes again: keys that it refused may be reconciled."""

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


async def _until_attempted(reflectors: Iterable[Reflector]) -> None:
    """Waits until each has tried its first list, at most `START_WITHIN`."""
    attempts = [reflector.attempted.wait() for reflector in reflectors]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_WITHIN.total_seconds()):
            await asyncio.gather(*attempts)


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
        self._on_demand: dict[PlaneName, KindsOnDemand] = {}
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
        engaged = self.get(plane)
        store = engaged.stores.get(kind)
        if store is not None:
            return store
        if kind not in engaged.watched:
            raise InvariantError(f"reading {kind.kind} on {plane!r}: it is not watched there")
        return ClosedLister(plane, kind)

    def find_store(self, plane: PlaneName, kind: Kind) -> Store | None:
        """None if the plane is not engaged, or the kind is not cached there or closed."""
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
        lane.suspension.listen(lambda: self._on_suspension(engaged))
        if any(item.on_demand is not None for item in kinds):
            self._on_demand[plane.name] = self._make_on_demand(engaged)
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
        self._on_demand.pop(name, None)
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

    # kinds on demand -------------------------------------------------------------------------

    def require(self, plane: PlaneName, kind: Kind) -> None:
        """Opens a kind on demand for a key that cannot be reconciled without it."""
        on_demand = self._on_demand.get(plane)
        if on_demand is not None:
            on_demand.require(kind)

    def _make_on_demand(self, engaged: EngagedPlane) -> KindsOnDemand:
        plane = engaged.plane

        def opened(kind: Kind) -> None:
            for listener in tuple(self._listeners):
                listener.opened(plane, kind)

        def attempted(kind: Kind) -> None:
            for listener in tuple(self._listeners):
                listener.attempted(plane, kind)

        def closed(kind: Kind) -> None:
            for listener in tuple(self._listeners):
                listener.closed(plane, kind)
            self._report(engaged)

        hooks = OnDemandHooks(lambda item: self._watch(engaged, item), opened, attempted, closed)
        return KindsOnDemand(engaged, self._deps.clock, hooks)

    # reflectors and probes -------------------------------------------------------------------

    async def _start(self, engaged: EngagedPlane) -> None:
        """Starts the reflectors of a plane, holding a start slot until each has tried to list, also
        those of kinds on demand that these lists opened.
        """
        self.starting += 1
        try:
            async with self._start_slots:
                always = [engaged.watched[kind] for kind in engaged.stores]
                await _until_attempted([self._watch(engaged, item) for item in always])
                if (on_demand := self._on_demand.get(engaged.plane.name)) is not None:
                    await on_demand.look_for_leftovers()
                    await _until_attempted(engaged.opening.values())
        finally:
            self.starting -= 1

    def _watch(self, engaged: EngagedPlane, item: CachedKind) -> Reflector:
        reflector = self._reflector(engaged, item)
        self._run(engaged, reflector)
        return reflector

    def _run(self, engaged: EngagedPlane, reflector: Reflector, delay: timedelta = ZERO) -> None:
        async def run() -> None:
            await self._deps.clock.sleep(delay)
            await reflector.run(engaged.usable)

        kind = reflector.store.kind

        def again() -> None:
            if engaged.stores.get(kind) is reflector.store:  # not closed meanwhile
                self._run(engaged, reflector, RESTART_AFTER)

        task = engaged.tasks.start(run(), kind.kind, on_crash=again)
        if task is not None:
            engaged.watches[kind] = task

    def _reflector(self, engaged: EngagedPlane, item: CachedKind) -> Reflector:
        role, on_demand = engaged.plane.role, self._on_demand.get(engaged.plane.name)
        handlers = [one.change_handler(role, item.kind) for one in self._listeners]
        if on_demand is not None and item.kind in on_demand.triggers:
            handlers.insert(0, on_demand.note_change)
        deps = ReflectorDeps(
            clock=self._deps.clock,
            random=self._deps.random,
            measures=self._deps.measures,
            selector=item.selector,
            on_change=join_handlers(handlers),
            on_synced=lambda: self._on_synced(engaged, item.kind),
        )
        return Reflector(engaged.kube, role, engaged.stores[item.kind], deps)

    def _on_synced(self, engaged: EngagedPlane, kind: Kind) -> None:
        engaged.opening.pop(kind, None)
        for listener in tuple(self._listeners):
            listener.synced(engaged.plane, kind)
        self._report(engaged)

    def _on_lane(self, engaged: EngagedPlane) -> None:
        self._report(engaged)
        if engaged.lane.is_open and engaged.usable.is_set():
            logger.warning("Plane does not answer", extra={"plane": engaged.plane.name})
            engaged.usable.clear()
            self._probes_of(engaged).start(next(iter(engaged.stores), _NAMESPACES))
        elif not engaged.lane.is_open and not engaged.usable.is_set():
            logger.info("Plane answers again", extra={"plane": engaged.plane.name})
            engaged.usable.set()
            for listener in tuple(self._listeners):
                listener.recovered(engaged.plane)

    def _on_suspension(self, engaged: EngagedPlane) -> None:
        """Its project refused a write, or accepts writes again."""
        self._report(engaged)
        if engaged.lane.suspension.is_suspended:
            logger.info("Project is suspended", extra={"plane": engaged.plane.name})
            self._permit_writes(engaged)
            return
        logger.info("Project accepts writes again", extra={"plane": engaged.plane.name})
        for listener in tuple(self._listeners):
            listener.resumed(engaged.plane)

    def expect_resume(self, name: PlaneName) -> None:
        """The project shows that it resumed: if it refused writes, one is sent at once."""
        engaged = self._engaged.get(name)
        if engaged is not None and engaged.lane.suspension.is_suspended:
            self._permit_writes(engaged, is_resuming=True)

    def _permit_writes(self, engaged: EngagedPlane, *, is_resuming: bool = False) -> None:
        def on_permit() -> None:
            for listener in tuple(self._listeners):
                listener.write_permitted(engaged.plane)

        self._probes_of(engaged).start_writes(on_permit, is_resuming=is_resuming)

    def _probes_of(self, engaged: EngagedPlane) -> PlaneProbes:
        if engaged.probes is None:
            engaged.probes = PlaneProbes(
                engaged.lane, engaged.kube, engaged.tasks, self._deps.clock, self._deps.random
            )
        return engaged.probes

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
