"""The node of a kind cluster: a container on this machine's kernel, as a `PodHost`.

Its processes are this machine's only if docker runs natively and not in a virtual machine;
`commands.check_machine` requires root for signals and files.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from e2e.backends.kind.clusters import KindCluster
from e2e.harness.access.waiting import until
from e2e.harness.errors import PlanesError
from e2e.harness.node import process_lookup
from e2e.harness.node.node import is_ready_since
from e2e.harness.planes.plane import RealPlane

# The API server runs on it and starts with it.
PATIENCE: Final = timedelta(minutes=4)


class KindNode:
    """The only node of a plane that is a kind cluster."""

    def __init__(self, plane: RealPlane, cluster: KindCluster) -> None:
        self.plane = plane
        self._cluster = cluster

    @property
    def pods_logs(self) -> Path:
        return self._cluster.spec.pods_logs

    def pid_of(self, program: str) -> int:
        for pid in process_lookup.members_of(process_lookup.namespace_of(self._cluster.pid())):
            if Path(process_lookup.command_of(pid)[0]).name == program:
                return pid
        raise PlanesError(
            f"looking for {program} of node {self._cluster.container}: it does not run",
            remedy=f"docker exec {self._cluster.container} systemctl status {program}",
        )

    def pids_of_container(self, container: str) -> list[int]:
        return process_lookup.pids_of_container(container)

    def root_of(self, pid: int) -> Path:
        return process_lookup.root_of(pid)

    async def reboot(self) -> None:
        await asyncio.to_thread(self._cluster.switch_off)
        # Node timestamps have a resolution of one second.
        begun = datetime.now(UTC).replace(microsecond=0)
        await asyncio.to_thread(self._cluster.switch_on)

        async def ready() -> bool:
            async with self.plane.client() as client:
                node = await client.find(f"/api/v1/nodes/{self._cluster.container}")
            return is_ready_since(node, begun)

        await until(
            f"node {self._cluster.container} to be Ready",
            ready,
            check=self.plane.runtime.check,
            patience=PATIENCE,
        )
