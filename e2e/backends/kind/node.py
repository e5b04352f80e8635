"""The node of a kind cluster: a container on this machine's kernel, looked into as nodes of ours.

See `e2e/backends/in_cluster/host.py`. That its processes are this machine's, and root may signal
them and read their files, is so where docker runs on this very machine and not in a machine of its
own; `commands.check_machine` asks for root.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from e2e.backends.kind.clusters import KindCluster
from e2e.planes.errors import PlanesError
from e2e.planes.node import looking
from e2e.planes.node.node import is_ready_since
from e2e.planes.plane import Plane
from e2e.planes.waiting import until

# Its API server is on it, and begins with it.
PATIENCE: Final = timedelta(minutes=4)


class KindNode:
    """The one node of a plane that is a kind cluster."""

    def __init__(self, plane: Plane, cluster: KindCluster) -> None:
        self.plane = plane
        self._cluster = cluster

    @property
    def pods_logs(self) -> Path:
        return self._cluster.asked.pods_logs

    def pid_of(self, program: str) -> int:
        for pid in looking.members_of(looking.namespace_of(self._cluster.pid())):
            if Path(looking.command_of(pid)[0]).name == program:
                return pid
        raise PlanesError(
            f"looking for {program} of node {self._cluster.container}: it does not run",
            remedy=f"docker exec {self._cluster.container} systemctl status {program}",
        )

    def pids_of_container(self, container: str) -> list[int]:
        return looking.pids_of_container(container)

    def root_of(self, pid: int) -> Path:
        return looking.root_of(pid)

    async def reboot(self) -> None:
        await asyncio.to_thread(self._cluster.switch_off)
        # To the second, as nodes tell the time.
        begun = datetime.now(UTC).replace(microsecond=0)
        await asyncio.to_thread(self._cluster.switch_on)

        async def ready() -> bool:
            async with self.plane.client() as client:
                found = await client.find(f"/api/v1/nodes/{self._cluster.container}")
            return is_ready_since(found, begun)

        await until(
            f"node {self._cluster.container} to be Ready",
            ready,
            check=self.plane.site.check,
            patience=PATIENCE,
        )
