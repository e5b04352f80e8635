"""Planes that are clusters of somebody else's making, in a stack whose other planes are ours.

The stack gives them everything it gives its own: the authority, the tokens of everybody, the key of
service accounts, the audit policy and a place for the log (`plane.write_access` and the run folder
say where). Whoever makes a cluster has it take these, and serve at a port of the stack's address;
from there on such a plane is told from ours by nothing but `Running`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from e2e.planes.hub import OnHub
    from e2e.planes.plane import Plane
    from e2e.planes.run_folder import RunFolder
    from e2e.planes.site import Site
    from e2e.planes.topology import PlaneSpec, Rates


class Clusters(Protocol):
    """All of one stack."""

    def take_room(self, run: RunFolder) -> str:
        """Before anything else is made: the address at which everybody finds every plane."""
        ...

    def prepare(self, spec: PlaneSpec, site: Site) -> Plane | None:
        """Composes a plane and starts nothing; None where it is the stack's own."""
        ...

    def prepare_karmada(self, hub: Plane, rates: Rates) -> OnHub:
        """Karmada around a hub that `prepare` composed."""
        ...

    async def give_room_back(self) -> None:
        """At the end, also of a start that failed: nothing of them is left."""
        ...
