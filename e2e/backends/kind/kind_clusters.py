"""All clusters of a stack as kind clusters: home, hub, cells and the single cluster.

Milo's root and projects stay processes of the stack. The hub is a cluster with Karmada on it; the
plane `hub` is Karmada's API server there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from e2e.backends.kind import addresses
from e2e.backends.kind.addresses import Ranges
from e2e.backends.kind.clusters import KindCluster, create_network, delete_left
from e2e.backends.kind.configuration import ClusterSpec
from e2e.backends.kind.karmada import Controllers, KarmadaServer, KindKarmada
from e2e.backends.kind.machine_lock import LOCK, lock_machine
from e2e.backends.kind.node import KindNode
from e2e.backends.kind.servers import Announce, ClusterServer, write_files
from e2e.harness.errors import PlanesError
from e2e.harness.node.nodes import announce
from e2e.harness.planes.plane import RealPlane
from e2e.harness.planes.stack_runtime import StackRuntime
from e2e.harness.planes.topology import PlaneSpec, Rates, Role
from e2e.harness.processes.ports import Ports
from e2e.harness.processes.run_folder import RunFolder
from e2e.harness.stack.hub import HubKarmada

OURS: Final = frozenset({Role.ROOT, Role.PROJECT})


class KindClusters:
    """`images` are the image archives loaded onto the node of each plane."""

    def __init__(
        self,
        images: Mapping[str, Sequence[Path]],
        address: str = addresses.ADDRESS,
        *,
        announce: Announce = announce,
        lock: Path = LOCK,
    ) -> None:
        self._announce = announce
        self._lock = lock
        self._machine: IO[str] | None = None
        self._images = {plane: tuple(archives) for plane, archives in images.items()}
        self._address = address
        self._servers: dict[str, ClusterServer] = {}
        self._hub: KarmadaServer | None = None
        self._held: list[Ports] = []

    def node(self, plane: str) -> KindNode:
        server = self._servers[plane]
        return KindNode(server.plane, server.cluster)

    def reserve(self, run: RunFolder) -> str:
        """Creates the docker network, after deleting what an earlier run left."""
        del run
        archives = [one for several in self._images.values() for one in several]
        if missing := [str(archive) for archive in archives if not archive.exists()]:
            raise PlanesError(
                f"looking for images: {missing[0]} is not there", remedy="run `nox -s images` first"
            )
        self._machine = lock_machine(self._lock)
        try:
            delete_left()
            create_network()
        except BaseException:
            self._machine.close()
            raise
        return self._address

    def prepare(self, spec: PlaneSpec, runtime: StackRuntime) -> RealPlane | None:
        if spec.role in OURS:
            return None
        if spec.role is Role.HUB:
            return self._prepare_hub(spec, runtime)
        return self._prepare_cluster(spec, runtime).plane

    def prepare_karmada(self, hub: RealPlane, rates: Rates) -> HubKarmada:
        if self._hub is None:
            raise LookupError("a hub is prepared before its Karmada")
        self._hub.rates = rates
        return KindKarmada(hub, Controllers(self._hub.host.plane))

    async def release(self) -> None:
        servers, self._servers, self._hub = self._servers, {}, None
        for held in self._held:
            held.close()
        self._held.clear()
        try:
            await asyncio.to_thread(_remove, [server.cluster for server in servers.values()])
        finally:
            if self._machine:
                self._machine.close()

    def _prepare_hub(self, spec: PlaneSpec, runtime: StackRuntime) -> RealPlane:
        """Prepares two planes: the cluster, and Karmada's API server in it."""
        below = PlaneSpec(f"{spec.name}-host", Role.SINGLE)
        runtime.tokens.admit(below.name)
        host = self._prepare_cluster(below, runtime, guest=spec.name)
        write_files(spec.name, runtime, host.cluster.spec.guest_port)
        self._hub = KarmadaServer(spec, runtime, host)
        return self._hub.plane

    def _prepare_cluster(
        self, spec: PlaneSpec, runtime: StackRuntime, guest: str = ""
    ) -> ClusterServer:
        held = Ports(self._address)
        self._held.append(held)
        asked = ClusterSpec(
            plane=spec.name,
            run=runtime.settings.run,
            address=self._address,
            port=held.reserve(),
            ranges=Ranges(len(self._servers)),
            guest=guest,
            guest_port=held.reserve() if guest else 0,
        )
        write_files(spec.name, runtime, asked.port)
        server = ClusterServer(
            spec,
            runtime,
            KindCluster(asked),
            images=self._images.get(spec.name, ()),
            held=held,
            announce=self._announce,
        )
        self._servers[spec.name] = server
        return server


def _remove(clusters: Sequence[KindCluster]) -> None:
    for cluster in clusters:
        cluster.unroute()
    delete_left()
