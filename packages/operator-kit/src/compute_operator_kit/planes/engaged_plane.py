"""One engaged plane (API server) with its client, stores and tasks, and the kinds cached on it.

A kind on demand has a store only while it is open: a reader of a closed one gets `Unreadable`, so
that "not watched" is never taken for "absent".
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from compute_operator_kit.cache.body_retention import BodyRetention
from compute_operator_kit.cache.budget import PlaneUsageMeter, UsageMeter
from compute_operator_kit.cache.closed_lister import NOT_WATCHED
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.lister import ServingState
from compute_operator_kit.cache.reflector import Reflector
from compute_operator_kit.cache.store import Store
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.interface import EVERYTHING, KubeClient, Selector
from compute_operator_kit.client.rest import Credentials, NoCredentials
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.core.partial_decoder import PartialDecoder
from compute_operator_kit.core.tasks import SupervisedTasks
from compute_operator_kit.planes.probes import PlaneProbes

OVER_BUDGET: Final = "OverBudget"


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
class OnDemand:
    """When a kind is watched on a plane: while objects of a trigger kind exist there, and
    `CLOSE_AFTER` longer.
    """

    triggers: tuple[Kind, ...]  # cached on the same planes, and not on demand themselves
    # Its own objects keep it open too. They are looked for once, when the plane is engaged: without
    # that, what a former process left behind would not be noticed.
    while_present: bool = False
    # Only trigger objects with a value in this index of their cache count; "": all of them.
    index: str = ""


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
    on_demand: OnDemand | None = None  # None: watched as long as the plane is engaged


class PlaneState(StrEnum):
    """The state of a plane in metrics."""

    UP = "up"
    # Caches are complete; the last request failed, or bodies are left out of caches.
    DEGRADED = "degraded"
    SUSPENDED = "suspended"  # its project refuses every create and update
    DOWN = "down"  # does not answer, or its caches were never complete


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
        # Of open kinds; a kind on demand has none while it is closed.
        self.stores = {
            kind: self._store(item) for kind, item in self.watched.items() if item.on_demand is None
        }
        self.opening: dict[Kind, Reflector] = {}  # opened on demand, before the first list ended
        self.watches: dict[Kind, asyncio.Task[None]] = {}  # the tasks of the reflectors
        self.usable = asyncio.Event()
        self.usable.set()
        self.tasks = SupervisedTasks(plane.name)
        self.probes: PlaneProbes | None = None  # made with the first probe

    def _store(self, item: CachedKind) -> Store:
        meter = self._meter
        keeping = None if meter is None else BodyRetention(meter, bodies=item.keeps_bodies)
        return Store(self.plane.name, item.kind, item.indexes, item.decoder, keeping)

    def open(self, kind: Kind) -> None:
        """Makes an empty store for a kind on demand."""
        self.stores[kind] = self._store(self.watched[kind])

    def close(self, kind: Kind) -> None:
        """Ends the watch of a kind on demand and drops its store: nothing is known of its objects
        any more, and keys that wait for a version of it are released.
        """
        self.opening.pop(kind, None)
        watch = self.watches.pop(kind, None)
        if watch is not None:
            watch.cancel()
        self.stores.pop(kind).drop(NOT_WATCHED)

    def is_open(self, kind: Kind) -> bool:
        return kind in self.stores

    @property
    def limit(self) -> str:
        """The limit that the plane exceeds (a list or its cache budget); "" for none."""
        refused = next((store.refusal for store in self.stores.values() if store.refusal), "")
        if refused or not isinstance(self._meter, PlaneUsageMeter):
            return refused
        return OVER_BUDGET if self._meter.account.is_over else ""

    @property
    def is_synced(self) -> bool:
        """Whether all open caches of the plane are complete, or of an optional kind not served."""
        return all(self.is_known(kind) for kind in self.stores)

    def is_known(self, kind: Kind) -> bool:
        """Whether the store is complete, or of an optional kind that is not served."""
        store = self.stores.get(kind)
        if store is None:
            return False  # closed
        is_missing = store.serving is ServingState.NOT_SERVED
        return store.is_synced or (is_missing and self.watched[kind].is_optional)

    @property
    def state(self) -> PlaneState:
        if self.lane.is_open or not self.is_synced:
            return PlaneState.DOWN
        if self.lane.suspension.is_suspended:
            return PlaneState.SUSPENDED
        return PlaneState.UP if self.lane.is_up and not self.limit else PlaneState.DEGRADED
