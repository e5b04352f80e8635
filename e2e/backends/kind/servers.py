"""Servers of planes that are clusters, as a stack runs them (`e2e/planes/running.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from e2e.backends.kind.clusters import KindCluster
from e2e.backends.kind.configuration import POLICY
from e2e.planes import probes
from e2e.planes.plane import Plane, write_access
from e2e.planes.ports import Ports
from e2e.planes.site import Site
from e2e.planes.topology import PlaneSpec
from e2e.planes.waiting import until

# Tells a plane where pods find its API server: at which address and port.
Announce: TypeAlias = Callable[[Plane, str, int], Awaitable[None]]


class Within:
    """A part that begins and ends with the cluster it is in."""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def start(self) -> None:
        """It runs already."""

    async def up(self) -> None:
        """It runs already."""

    async def restart(self) -> None:
        """Nobody needs it to."""

    async def stop(self) -> None:
        """It ends with its cluster."""

    async def crash(self) -> None:
        """It ends with its cluster."""


def write_files(plane: str, site: Site, port: int) -> None:
    """What the API server of a plane in a cluster finds mounted."""
    write_access(plane, site, port)
    run = site.ground.run
    run.write_for_plane(plane, POLICY, run.audit_policy.read_text("utf-8"))


class ClusterServer:
    """The API server of a cluster: made with it, switched off and on with its node."""

    def __init__(
        self,
        spec: PlaneSpec,
        site: Site,
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
        port = cluster.asked.port
        self.plane = Plane(spec, site, port, self, Within(f"{spec.name}.controllers"))

    def start(self) -> None:
        self.cluster.switch_on()

    async def up(self) -> None:
        await asyncio.to_thread(self.start if self._is_made else self._make)
        await self._serves()
        # Before any pod of ours begins: kind leaves it to the stack where `kubernetes` leads.
        await self._announce(self.plane, self.plane.site.ground.address, self.plane.port)

    async def restart(self) -> None:
        await self.stop()
        await self.up()

    async def stop(self) -> None:
        await self.crash()

    async def crash(self) -> None:
        await asyncio.to_thread(self.cluster.switch_off)

    def _make(self) -> None:
        self._held.close()  # docker listens there from now on
        self.cluster.create()
        self.cluster.load(self._images)
        self._is_made = True

    async def _serves(self) -> None:
        ready = probes.https_answers(self.plane.endpoint(), "/readyz")
        await until(f"{self.name} to be ready", ready, check=self.plane.site.check)
