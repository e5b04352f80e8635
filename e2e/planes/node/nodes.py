"""All nodes of a stack: their slots, the address pods find the stack at, their beginning and end.

The stack asks for room before it makes anything else, because its own address depends on it; it
ends the nodes' processes with all others, and then has what they left removed.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from compute_sim_planes.json_types import JsonObject
from e2e.planes.errors import PlanesError
from e2e.planes.identities import Identity
from e2e.planes.node import leftovers, pause, reserving
from e2e.planes.node.machine import check_machine
from e2e.planes.node.node import PROXY, Node, identity_of
from e2e.planes.node.reserving import Held
from e2e.planes.node.slot import Slot
from e2e.planes.plane import Plane, prepare_scheduler
from e2e.planes.process import ManagedProcess
from e2e.planes.run_folder import RunFolder


class Nodes:
    """`images` are the archives that the node of each plane has from the start."""

    def __init__(self, images: Mapping[str, Sequence[Path]]) -> None:
        self._images = {plane: tuple(archives) for plane, archives in images.items()}
        self._held: dict[str, Held] = {}
        self._nodes: dict[str, Node] = {}
        self._schedulers: dict[str, ManagedProcess] = {}

    def __getitem__(self, plane: str) -> Node:
        return self._nodes[plane]

    def __contains__(self, plane: str) -> bool:
        return plane in self._images

    @property
    def slots(self) -> Mapping[str, Slot]:
        return MappingProxyType({plane: held.slot for plane, held in self._held.items()})

    @property
    def identities(self) -> tuple[Identity, ...]:
        return (PROXY, *(identity_of(plane) for plane in self._images))

    def take_room(self, run: RunFolder) -> str:
        """The stack's address; from here on the machine remembers what to clear away."""
        missing = [
            str(archive)
            for archives in self._images.values()
            for archive in archives
            if not archive.exists()
        ]
        if missing:
            raise PlanesError(
                f"looking for images: {missing[0]} is not there", remedy="run `nox -s images` first"
            )
        check_machine(nodes=len(self._images))
        for plane, held in zip(self._images, reserving.reserve(len(self._images)), strict=True):
            self._held[plane] = held
            held.tell(run.path)
        first = next(iter(self._held.values())).slot
        leftovers.add_address(first)
        return first.stack_address

    def prepare(self, plane: Plane) -> None:
        """Composes the node of a plane, where it is to have one; starts nothing."""
        if plane.name in self._images:
            waiting = plane.site.ground.run.path / "pause.tar"
            pause.write_image(waiting)
            images = (waiting, *self._images[plane.name])
            self._schedulers[plane.name] = prepare_scheduler(plane)
            self._nodes[plane.name] = Node(plane, self._held[plane.name].slot, images)

    async def up(self, plane: Plane) -> None:
        """From a plane that serves to one that runs pods; where it is to have no node, nothing."""
        if plane.name in self._nodes:
            await self._schedulers[plane.name].up()
            await announce(plane, plane.site.ground.address, plane.port)
            await self._nodes[plane.name].up()

    async def give_room_back(self) -> None:
        """After the end of every process: nothing of the nodes is left, and the next may come."""
        nodes, self._nodes = self._nodes, {}
        held, self._held = self._held, {}
        for node in nodes.values():
            await node.clear()
        await asyncio.gather(*(asyncio.to_thread(_remove, node.folder) for node in nodes.values()))
        for one in held.values():
            leftovers.sweep(one.slot)
            one.release()


def _remove(folder: Path) -> None:
    """A node's disk: tens of thousands of files, for which `rm` takes a third of Python's time."""
    subprocess.run(["rm", "-rf", str(folder)], check=True)


async def announce(plane: Plane, address: str, port: int) -> None:
    """Where pods find the API server behind the Service `kubernetes`: itself, or a link to it."""
    slice_: JsonObject = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": "default",
            "name": "kubernetes",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    async with plane.client() as client:
        await client.apply(slice_)
