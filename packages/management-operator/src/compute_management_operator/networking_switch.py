"""Follows which networking kinds each project serves, and doubts a kind that is gone (operations.md
1.4).

```
            kind served                  two answers "not served", 30 s apart
 unknown ────────────────► on ──────────────────────────────────────────────► off
    └────────── kind not served ─────────────────────────────────────────────►┘
```

Turning on takes one complete list, turning off takes two answers of the server: one partial
discovery must not make every city count as served. While the second is awaited the kind is doubted
and nothing is concluded. Whoever depends on it is told of every turn, because no object need change
with it: a kind that is installed without a Location says something about every city.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from compute_management_operator.kinds import LOCATION, NETWORK
from compute_management_operator.networking import Consulting, Networking
from compute_operator_kit.cache import Change, Serving
from compute_operator_kit.clock import Clock
from compute_operator_kit.errors import ReconcileError
from compute_operator_kit.keys import Kind, PlaneName, Role
from compute_operator_kit.kube import NotServed, Writer
from compute_operator_kit.parts import ignore_change
from compute_operator_kit.planes import Plane
from compute_operator_kit.reach import Reach

ASK_AGAIN: Final = timedelta(seconds=30)
NETWORKING_KINDS: Final = (LOCATION, NETWORK)
WRITER: Final = Writer("networking", "compute-workload")  # reads only


class NetworkingSwitch:
    """One for all projects; each kind of each plane is on its own."""

    def __init__(self, setting: Networking, reach: Reach, clock: Clock) -> None:
        self.consulting = Consulting(setting, self._is_doubted)
        self._reach = reach
        self._clock = clock
        self._served: set[tuple[PlaneName, Kind]] = set()
        self._doubted: set[tuple[PlaneName, Kind]] = set()
        self._listeners: list[Callable[[PlaneName], None]] = []

    @property
    def is_consulted(self) -> bool:
        """Whether networking kinds are watched at all."""
        return self.consulting.setting is not Networking.OFF

    def tell(self, listener: Callable[[PlaneName], None]) -> None:
        """Has somebody called when a kind of a project turns on, off or into doubt."""
        self._listeners.append(listener)

    def _is_doubted(self, plane: PlaneName, kind: Kind) -> bool:
        return (plane, kind) in self._doubted

    # what planes tell ----------------------------------------------------------------------------

    def teller(self, role: Role, kind: Kind) -> Callable[[Change], None]:  # noqa: ARG002
        return ignore_change

    def synced(self, plane: Plane, kind: Kind) -> None:
        if plane.role is not Role.PROJECT or kind not in NETWORKING_KINDS:
            return
        place = (plane.name, kind)
        view = self._reach.caches.view(*place)
        if view.is_synced:
            self._served.add(place)
            self._doubted.discard(place)
        elif view.serving is Serving.NOT_SERVED and place in self._served - self._doubted:
            self._doubted.add(place)
            self._reach.start(self._ask_until_sure(*place), f"networking of {plane.name}")
        self._tell_all(plane.name)

    def recovered(self, plane: Plane) -> None:
        pass

    def disengaged(self, plane: Plane) -> None:
        for kind in NETWORKING_KINDS:
            self._served.discard((plane.name, kind))
            self._doubted.discard((plane.name, kind))

    # doubting ------------------------------------------------------------------------------------

    async def _ask_until_sure(self, plane: PlaneName, kind: Kind) -> None:
        """The first "not served" was the cache's; what is not answered changes nothing."""
        while (plane, kind) in self._doubted:
            await self._clock.sleep(ASK_AGAIN)
            if (plane, kind) in self._doubted and await self._is_gone(plane, kind):
                self._served.discard((plane, kind))
                self._doubted.discard((plane, kind))
                self._tell_all(plane)

    async def _is_gone(self, plane: PlaneName, kind: Kind) -> bool:
        try:
            page = await self._reach.kube(plane, WRITER).list(kind, limit=1)
        except ReconcileError:
            return False
        return isinstance(page, NotServed)

    def _tell_all(self, plane: PlaneName) -> None:
        for listener in self._listeners:
            listener(plane)
