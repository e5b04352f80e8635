"""Finds processes of nodes from the machine, by their mount namespace.

Containers on a node have mount namespaces of their own. Needs root, as nodes do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def all_pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))


def namespace_of(pid: int) -> str:
    """The mount namespace of a process; empty if it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    except OSError:  # it ended meanwhile
        return ""


def members_of(namespace: str) -> list[int]:
    """Processes in a mount namespace."""
    return [pid for pid in all_pids() if namespace_of(pid) == namespace]


def pids_of_container(container: str) -> list[int]:
    """Process ids of a container, by the container id in its pod's status."""
    word = container.rpartition("/")[2].encode()
    return [pid for pid in all_pids() if word in _read(pid, "cgroup")]


def command_of(pid: int) -> list[str]:
    return _read(pid, "cmdline").decode(errors="replace").split("\0")


def root_of(pid: int) -> Path:
    """The root directory that a process sees."""
    return Path(f"/proc/{pid}/root")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
