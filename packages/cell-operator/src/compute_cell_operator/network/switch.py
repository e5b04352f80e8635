"""Whether networking is on in this cell (operations.md 1.4).

```
            all kinds served                two answers "not served", 30 s apart
 unknown ──────────────────► on ──────────────────────────────────────────────► off
    └────────── a kind is not served ────────────────────────────────────────────►┘
```

`auto` follows what the cell serves. Turning on takes one complete look, turning off takes two
answers of the server: one failed or partial discovery must not take gates off Instances. While the
second is awaited, networking is on and unreadable, so nothing is concluded. `on` and `off` never
move. Who depends on the state is told of every change, and of caches that became readable.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from compute_cell_operator.kinds import NETWORKING_KINDS
from compute_cell_operator.network.state import Networking, State
from compute_cell_operator.plane_names import CELL
from compute_operator_kit.cache import Change, Serving
from compute_operator_kit.clock import Clock
from compute_operator_kit.errors import ReconcileError
from compute_operator_kit.keys import Kind, Role
from compute_operator_kit.kube import NotServed, Writer
from compute_operator_kit.planes import Plane
from compute_operator_kit.reach import Reach

ASK_AGAIN: Final = timedelta(seconds=30)  # operations.md 1.4
WRITER: Final = Writer("discovery", "compute-deployment")  # reads only


_FIXED: Final = {
    Networking.AUTO: State.UNKNOWN,
    Networking.ON: State.ON,
    Networking.OFF: State.OFF,
}


class Switch:
    """The state, kept by listening to the cell's caches."""

    def __init__(self, setting: Networking, reach: Reach, clock: Clock) -> None:
        self.setting = setting
        self.state = _FIXED[setting]
        self._reach = reach
        self._clock = clock
        self._readable: tuple[bool, ...] = ()
        self._is_doubting = False
        self._told: list[Callable[[], None]] = []

    @property
    def is_consulted(self) -> bool:
        """Whether networking kinds are watched at all."""
        return self.setting is not Networking.OFF

    def tell(self, listener: Callable[[], None]) -> None:
        """Has somebody called when the state, or what of it is readable, changes."""
        self._told.append(listener)

    # what planes tell ----------------------------------------------------------------------------

    def teller(self, role: Role, kind: Kind) -> Callable[[Change], None]:  # noqa: ARG002
        return _ignore

    def synced(self, plane: Plane, kind: Kind) -> None:
        if plane.name != CELL or kind not in NETWORKING_KINDS:
            return
        before = (self.state, self._readable)
        views = [self._reach.caches.view(CELL, kind) for kind in NETWORKING_KINDS]
        self._readable = tuple(view.is_synced for view in views)
        if self.setting is Networking.AUTO:
            self._follow([view.serving for view in views])
        if before != (self.state, self._readable):
            self._tell_all()

    def recovered(self, plane: Plane) -> None:
        pass

    def disengaged(self, plane: Plane) -> None:
        pass

    # deciding ------------------------------------------------------------------------------------

    def _follow(self, found: list[Serving]) -> None:
        if all(self._readable):
            self.state = State.ON
        elif Serving.NOT_SERVED in found:
            if self.state is State.UNKNOWN:
                self.state = State.OFF
            elif self.state is State.ON and not self._is_doubting:
                self._is_doubting = True
                self._reach.start(self._doubt(), "networking")

    async def _doubt(self) -> None:
        """Asks the server itself until it says yes or no; what it does not answer changes nothing.

        The first "not served" was a reflector's, and came just now.
        """
        try:
            is_served: bool | None = None
            while is_served is None:
                await self._clock.sleep(ASK_AGAIN)
                is_served = await self._is_served()
            if not is_served:
                self.state = State.OFF
                self._tell_all()
        finally:
            self._is_doubting = False

    async def _is_served(self) -> bool | None:
        kube = self._reach.kube(CELL, WRITER)
        try:
            pages = [await kube.list(kind, limit=1) for kind in NETWORKING_KINDS]
        except ReconcileError:
            return None
        return not any(isinstance(page, NotServed) for page in pages)

    def _tell_all(self) -> None:
        for listener in self._told:
            listener()


def _ignore(_: Change) -> None:
    """Changes of objects are the controllers' affair."""
