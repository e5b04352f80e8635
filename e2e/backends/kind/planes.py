"""All clusters of a stack, as `e2e/planes/clusters.py` asks for them: home, hub, cells, the single.

Milo's root and projects stay processes of the stack. The hub is a cluster with Karmada on it; what
operators call the hub is Karmada's API server there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from e2e.backends.kind import places
from e2e.backends.kind.clusters import KindCluster, create_network, delete_left
from e2e.backends.kind.configuration import Asked
from e2e.backends.kind.holding import LOCK, hold_machine
from e2e.backends.kind.karmada import Controllers, KarmadaServer, KindKarmada
from e2e.backends.kind.node import KindNode
from e2e.backends.kind.places import Ranges
from e2e.backends.kind.servers import Announce, ClusterServer, write_files
from e2e.planes.errors import PlanesError
from e2e.planes.hub import OnHub
from e2e.planes.node.nodes import announce
from e2e.planes.plane import Plane
from e2e.planes.ports import Ports
from e2e.planes.run_folder import RunFolder
from e2e.planes.site import Site
from e2e.planes.topology import PlaneSpec, Rates, Role

OURS: Final = frozenset({Role.ROOT, Role.PROJECT})


class KindClusters:
    """`images` are the archives that the node of each plane has from the start."""

    def __init__(
        self,
        images: Mapping[str, Sequence[Path]],
        address: str = places.ADDRESS,
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

    def take_room(self, run: RunFolder) -> str:
        """The network; what a crashed run left of it and on it goes first."""
        del run
        archives = [one for several in self._images.values() for one in several]
        if missing := [str(archive) for archive in archives if not archive.exists()]:
            raise PlanesError(
                f"looking for images: {missing[0]} is not there", remedy="run `nox -s images` first"
            )
        self._machine = hold_machine(self._lock)
        try:
            delete_left()
            create_network()
        except BaseException:
            self._machine.close()
            raise
        return self._address

    def prepare(self, spec: PlaneSpec, site: Site) -> Plane | None:
        if spec.role in OURS:
            return None
        if spec.role is Role.HUB:
            return self._prepare_hub(spec, site)
        return self._prepare_cluster(spec, site).plane

    def prepare_karmada(self, hub: Plane, rates: Rates) -> OnHub:
        if self._hub is None:
            raise LookupError("a hub is prepared before its Karmada")
        self._hub.rates = rates
        return KindKarmada(hub, Controllers(self._hub.host.plane))

    async def give_room_back(self) -> None:
        servers, self._servers, self._hub = self._servers, {}, None
        for held in self._held:
            held.close()
        self._held.clear()
        try:
            await asyncio.to_thread(_remove, [server.cluster for server in servers.values()])
        finally:
            if self._machine:
                self._machine.close()

    def _prepare_hub(self, spec: PlaneSpec, site: Site) -> Plane:
        """Two planes: the cluster, and the API server in it, which is the stack's."""
        below = PlaneSpec(f"{spec.name}-host", Role.SINGLE)
        site.tokens.admit(below.name)
        host = self._prepare_cluster(below, site, guest=spec.name)
        write_files(spec.name, site, host.cluster.asked.guest_port)
        self._hub = KarmadaServer(spec, site, host)
        return self._hub.plane

    def _prepare_cluster(self, spec: PlaneSpec, site: Site, guest: str = "") -> ClusterServer:
        held = Ports(self._address)
        self._held.append(held)
        asked = Asked(
            plane=spec.name,
            run=site.ground.run,
            address=self._address,
            port=held.reserve(),
            ranges=Ranges(len(self._servers)),
            guest=guest,
            guest_port=held.reserve() if guest else 0,
        )
        write_files(spec.name, site, asked.port)
        server = ClusterServer(
            spec,
            site,
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
