"""Whether networking is on in this cell: the state of all networking kinds together (cell.md 6).

Networking needs every kind. It is off where one of them is not served, and unknown until all are
listed: deciding earlier would start an Instance without its network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from compute_cell_operator.network.state import NetworkingState
from compute_cell_operator.planes import CELL, NETWORKING_KINDS
from compute_operator_kit.cache.optional_kinds import OptionalKindsMode
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import Role
from compute_operator_kit.planes.optional_kinds import KindState, OptionalKinds, TrackedKinds

TRACKED: Final = TrackedKinds(
    Role.HOME, NETWORKING_KINDS, FieldOwner("discovery", "compute-deployment")
)


class NetworkingKinds:
    """The networking kinds of the cell."""

    def __init__(self, mode: OptionalKindsMode, context: OperatorContext, clock: Clock) -> None:
        self.kinds = OptionalKinds(mode, TRACKED, context, clock)

    @property
    def is_consulted(self) -> bool:
        """Whether networking kinds are watched at all."""
        return self.kinds.are_watched

    @property
    def state(self) -> NetworkingState:
        if self.kinds.mode is OptionalKindsMode.ON:
            return NetworkingState.ON
        if self.kinds.mode is OptionalKindsMode.OFF:
            return NetworkingState.OFF
        states = {self.kinds.state(CELL, kind) for kind in NETWORKING_KINDS}
        if KindState.OFF in states:
            return NetworkingState.OFF
        return NetworkingState.UNKNOWN if KindState.UNKNOWN in states else NetworkingState.ON

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Calls `listener` when the state changes, or a kind becomes readable."""
        self.kinds.add_listener(lambda _: listener())
