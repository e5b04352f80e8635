"""All nodes of a stack: their slots, the stack's address for pods, their start and end.

The stack reserves slots first, because its address depends on them. It ends the nodes' processes
with all others and then has their leftovers removed.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from compute_sim_planes.json_types import JsonObject
from e2e.harness.errors import PlanesError
from e2e.harness.node import leftovers, pause, reserving
from e2e.harness.node.machine import check_machine
from e2e.harness.node.node import PROXY, Node, identity_of
from e2e.harness.node.reserving import ReservedSlot
from e2e.harness.planes.identities import Identity
from e2e.harness.planes.node_slot import NodeSlot
from e2e.harness.planes.plane import RealPlane, prepare_scheduler
from e2e.harness.processes.process import ManagedProcess
from e2e.harness.processes.run_folder import RunFolder


class Nodes:
    """`images` are the image archives loaded onto the node of each plane."""

    def __init__(self, images: Mapping[str, Sequence[Path]]) -> None:
        self._images = {plane: tuple(archives) for plane, archives in images.items()}
        self._held: dict[str, ReservedSlot] = {}
        self._nodes: dict[str, Node] = {}
        self._schedulers: dict[str, ManagedProcess] = {}

    def __getitem__(self, plane: str) -> Node:
        return self._nodes[plane]

    def __contains__(self, plane: str) -> bool:
        return plane in self._images

    @property
    def slots(self) -> Mapping[str, NodeSlot]:
        return MappingProxyType({plane: held.slot for plane, held in self._held.items()})

    @property
    def identities(self) -> tuple[Identity, ...]:
        return (PROXY, *(identity_of(plane) for plane in self._images))

    def reserve(self, run: RunFolder) -> str:
        """Reserves slots and returns the stack's address; the lock files note what to clean up."""
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
            held.record_owner(run.path)
        first = next(iter(self._held.values())).slot
        leftovers.add_address(first)
        return first.stack_address

    def prepare(self, plane: RealPlane) -> None:
        """Prepares the node of a plane that needs one; starts nothing."""
        if plane.name in self._images:
            waiting = plane.runtime.settings.run.path / "pause.tar"
            pause.write_image(waiting)
            images = (waiting, *self._images[plane.name])
            self._schedulers[plane.name] = prepare_scheduler(plane)
            self._nodes[plane.name] = Node(plane, self._held[plane.name].slot, images)

    async def up(self, plane: RealPlane) -> None:
        """Starts the node of a plane that needs one."""
        if plane.name in self._nodes:
            await self._schedulers[plane.name].up()
            await announce(plane, plane.runtime.settings.address, plane.port)
            await self._nodes[plane.name].up()

    async def release(self) -> None:
        """Removes all leftovers and releases the slots, after every process has ended."""
        nodes, self._nodes = self._nodes, {}
        held, self._held = self._held, {}
        for node in nodes.values():
            await node.clear()
        await asyncio.gather(*(asyncio.to_thread(_remove, node.folder) for node in nodes.values()))
        for one in held.values():
            leftovers.sweep(one.slot)
            one.release()


def _remove(folder: Path) -> None:
    """Removes a node's files: tens of thousands, for which `rm` takes a third of Python's time."""
    subprocess.run(["rm", "-rf", str(folder)], check=True)


async def announce(plane: RealPlane, address: str, port: int) -> None:
    """Sets the endpoint of the Service `kubernetes`: the API server, or a link to it."""
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
