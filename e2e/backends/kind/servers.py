"""Servers of planes that are kind clusters, behind the protocols by which a stack runs servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from e2e.backends.kind.clusters import KindCluster
from e2e.backends.kind.configuration import POLICY
from e2e.harness.access.waiting import until
from e2e.harness.planes.plane import RealPlane, write_access
from e2e.harness.planes.stack_runtime import StackRuntime
from e2e.harness.planes.topology import PlaneSpec
from e2e.harness.processes import probes
from e2e.harness.processes.ports import Ports

# Sets the address and port at which pods of a plane reach its API server.
Announce: TypeAlias = Callable[[RealPlane, str, int], Awaitable[None]]


class ServerInCluster:
    """A component that starts and ends with its cluster."""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def start(self) -> None:
        """Nothing to do: it runs already."""

    async def up(self) -> None:
        """Nothing to do: it runs already."""

    async def restart(self) -> None:
        """Nothing to do: no scenario restarts it."""

    async def stop(self) -> None:
        """Nothing to do: it ends with its cluster."""

    async def crash(self) -> None:
        """Nothing to do: it ends with its cluster."""


def write_files(plane: str, runtime: StackRuntime, port: int) -> None:
    """Writes the files that the API server of a plane in a cluster has mounted."""
    write_access(plane, runtime, port)
    run = runtime.settings.run
    run.write_for_plane(plane, POLICY, run.audit_policy.read_text("utf-8"))


class ClusterServer:
    """The API server of a cluster, switched off and on with its node."""

    def __init__(
        self,
        spec: PlaneSpec,
        runtime: StackRuntime,
        cluster: KindCluster,
        *,
        images: Sequence[Path],
        held: Ports,
        announce: Announce,
    ) -> None:
        self.name: Final = f"{spec.name}.cluster"
        self.cluster = cluster
        self._images = images
        self._held = held
        self._announce = announce
        self._is_made = False
        port = cluster.spec.port
        self.plane = RealPlane(
            spec, runtime, port, self, ServerInCluster(f"{spec.name}.controllers")
        )

    def start(self) -> None:
        self.cluster.switch_on()

    async def up(self) -> None:
        await asyncio.to_thread(self.start if self._is_made else self._make)
        await self._serves()
        # Before any pod starts: kind leaves the endpoint of the Service `kubernetes` to the stack.
        await self._announce(self.plane, self.plane.runtime.settings.address, self.plane.port)

    async def restart(self) -> None:
        await self.stop()
        await self.up()

    async def stop(self) -> None:
        await self.crash()

    async def crash(self) -> None:
        await asyncio.to_thread(self.cluster.switch_off)

    def _make(self) -> None:
        self._held.close()  # docker listens on the port from now on
        self.cluster.create()
        self.cluster.load(self._images)
        self._is_made = True

    async def _serves(self) -> None:
        ready = probes.https_answers(self.plane.endpoint(), "/readyz")
        await until(f"{self.name} to be ready", ready, check=self.plane.runtime.check)
