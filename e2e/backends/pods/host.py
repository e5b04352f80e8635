"""The protocol of a node that runs pods, as far as scenarios observe and disrupt it.

Two classes implement it: `e2e.harness.node.node.Node`, made of namespaces on this machine, and
`e2e.backends.kind.node.KindNode`, a docker container. Both share this machine's kernel, so
processes are found and signalled in the same way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from e2e.harness.planes.plane import RealPlane


class PodHost(Protocol):
    """The only node of a plane."""

    @property
    def plane(self) -> RealPlane: ...

    @property
    def pods_logs(self) -> Path:
        """The kubelet's folder of container logs, as a path on this machine."""
        ...

    def pid_of(self, program: str) -> int:
        """The process id, on this machine, of a program of the node."""
        ...

    def pids_of_container(self, container: str) -> list[int]:
        """Process ids of a container, by the container id in its pod's status."""
        ...

    def root_of(self, pid: int) -> Path:
        """The root directory that a process of the node sees, as a path on this machine."""
        ...

    async def reboot(self) -> None:
        """Power-cycles the node and waits until it is Ready again."""
        ...
