"""What pods need of the node they are on, as far as scenarios look at them and hurt them.

Two make it: `e2e.planes.node.node.Node`, of namespaces on this machine, and
`e2e.backends.kind.node.KindNode`, a container of docker's. Both run on this machine's kernel, so
processes are found, stopped and starved the same way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from e2e.planes.plane import Plane


class HostOfPods(Protocol):
    """The one node of a plane."""

    @property
    def plane(self) -> Plane: ...

    @property
    def pods_logs(self) -> Path:
        """Where kubelet keeps what containers print, seen from this machine."""
        ...

    def pid_of(self, program: str) -> int:
        """A program of the node, as this machine counts."""
        ...

    def pids_of_container(self, container: str) -> list[int]:
        """Processes of a container, by the id that its pod's status tells."""
        ...

    def root_of(self, pid: int) -> Path:
        """The file system as a process of the node sees it."""
        ...

    async def reboot(self) -> None:
        """As by the power switch; returns when the node takes pods again."""
        ...
