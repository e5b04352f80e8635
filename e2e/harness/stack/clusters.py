"""The protocol for planes that are external clusters (kind) in a stack of our own processes.

The stack gives them its CA, all tokens, the service account key, the audit policy and a place for
the log (`plane.write_access` and the run folder define where). The provider makes a cluster use
them and serve at a port of the stack's address; apart from its `RunningServer`, such a plane is
then like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from e2e.harness.planes.plane import RealPlane
    from e2e.harness.planes.stack_runtime import StackRuntime
    from e2e.harness.planes.topology import PlaneSpec, Rates
    from e2e.harness.processes.run_folder import RunFolder
    from e2e.harness.stack.hub import HubKarmada


class ClusterProvider(Protocol):
    """All clusters of one stack."""

    def reserve(self, run: RunFolder) -> str:
        """Called first; returns the address at which every plane is reached."""
        ...

    def prepare(self, spec: PlaneSpec, runtime: StackRuntime) -> RealPlane | None:
        """Prepares a plane without starting it; None if the plane is a process of the stack."""
        ...

    def prepare_karmada(self, hub: RealPlane, rates: Rates) -> HubKarmada:
        """Karmada for a hub that `prepare` prepared."""
        ...

    async def release(self) -> None:
        """Removes all clusters, also after a failed start."""
        ...
