"""Tracks which optional kinds each plane of a role serves (operations.md 1.4).

```
            kind served                 two answers "not served", 30 s apart
 unknown ────────────────► on ─────────────────────────────────────────────► off
    └────────── kind not served ────────────────────────────────────────────►┘
```

Turning a kind on takes one complete list, turning it off two answers of the server: one partial
discovery must not remove gates from Instances or make every city count as served. Until the second
answer the kind is unreadable. Listeners are called at every turn, which need not change any object.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, Protocol

from typing_extensions import override

from compute_operator_kit.cache.lister import Caches, ServingState
from compute_operator_kit.cache.optional_kinds import OptionalKindsMode, OptionalKindsReader
from compute_operator_kit.client.interface import FieldOwner, KubeClient, NotServed
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.registry import PlaneListener

CONFIRM_AFTER: Final = timedelta(seconds=30)  # operations.md 1.4


class KindState(StrEnum):
    """Whether an optional kind counts on a plane, in mode `auto`."""

    UNKNOWN = "unknown"  # neither listed nor known not to be served
    ON = "on"
    UNCERTAIN = "uncertain"  # was served; "not served" is not confirmed yet
    OFF = "off"


class PlaneAccess(Protocol):
    """The part of `OperatorContext` that is needed here."""

    @property
    def caches(self) -> Caches: ...

    def kube(self, plane: PlaneName, owner: FieldOwner, /) -> KubeClient: ...

    def start(self, work: Coroutine[object, object, None], name: str, /) -> None: ...


@dataclass(frozen=True, slots=True)
class TrackedKinds:
    """The kinds that are optional on every plane of a role."""

    role: Role
    kinds: tuple[Kind, ...]
    owner: FieldOwner  # of the confirming reads


class OptionalKinds(PlaneListener):
    """The state of each kind of each plane."""

    def __init__(
        self, mode: OptionalKindsMode, tracked: TrackedKinds, access: PlaneAccess, clock: Clock
    ) -> None:
        self.mode = mode
        self.reader = OptionalKindsReader(mode, self._is_uncertain)
        self._tracked = tracked
        self._access = access
        self._clock = clock
        self._states: dict[tuple[PlaneName, Kind], KindState] = {}
        self._listeners: list[Callable[[PlaneName], None]] = []

    @property
    def are_watched(self) -> bool:
        return self.mode is not OptionalKindsMode.OFF

    def add_listener(self, listener: Callable[[PlaneName], None]) -> None:
        """Calls `listener` with the plane when one of its kinds becomes readable or turns."""
        self._listeners.append(listener)

    def state(self, plane: PlaneName, kind: Kind) -> KindState:
        return self._states.get((plane, kind), KindState.UNKNOWN)

    @override
    def synced(self, plane: Plane, kind: Kind) -> None:
        if plane.role is not self._tracked.role or kind not in self._tracked.kinds:
            return
        lister = self._access.caches.lister(plane.name, kind)
        if lister.is_synced:
            self._states[plane.name, kind] = KindState.ON
        elif lister.serving is ServingState.NOT_SERVED:
            self._mark_unserved(plane.name, kind)
        self._notify(plane.name)

    @override
    def closed(self, plane: Plane, kind: Kind) -> None:
        if self._is_uncertain(plane.name, kind):
            # The next list answers once more; without a watch the confirming reads would not end.
            self._states[plane.name, kind] = KindState.ON

    @override
    def disengaged(self, plane: Plane) -> None:
        for kind in self._tracked.kinds:
            self._states.pop((plane.name, kind), None)

    def _mark_unserved(self, plane: PlaneName, kind: Kind) -> None:
        match self.state(plane, kind):
            case KindState.UNKNOWN:
                self._states[plane, kind] = KindState.OFF
            case KindState.ON if self.mode is OptionalKindsMode.AUTO:
                self._states[plane, kind] = KindState.UNCERTAIN
                self._access.start(self._confirm(plane, kind), f"{kind.kind} of {plane}")
            case KindState.ON | KindState.UNCERTAIN | KindState.OFF:
                pass

    async def _confirm(self, plane: PlaneName, kind: Kind) -> None:
        """Reads until the cache is complete again or the server answers "not served" once more; a
        failed request changes nothing.
        """
        while self._is_uncertain(plane, kind):
            await self._clock.sleep(CONFIRM_AFTER)
            if not await self._is_unserved(plane, kind):
                continue
            if self._is_uncertain(plane, kind):  # not listed again meanwhile
                self._states[plane, kind] = KindState.OFF
                self._notify(plane)

    async def _is_unserved(self, plane: PlaneName, kind: Kind) -> bool:
        try:
            page = await self._access.kube(plane, self._tracked.owner).list(kind, limit=1)
        except ReconcileError:
            return False
        return isinstance(page, NotServed)

    def _is_uncertain(self, plane: PlaneName, kind: Kind) -> bool:
        return self.state(plane, kind) is KindState.UNCERTAIN

    def _notify(self, plane: PlaneName) -> None:
        for listener in self._listeners:
            listener(plane)
