"""Finds and removes what a node leaves on the machine, also after kill -9.

Mounts, rules and the node's network end with its namespaces. The stack's address, cgroups, an
unattached veth interface and the run folder remain. Every step checks first and is idempotent.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from e2e.harness.errors import PlanesError
from e2e.harness.node.machine import CGROUPS
from e2e.harness.planes.node_slot import COUNT, NodeSlot

PATIENCE: Final = 15.0
POLL: Final = 0.02
UNIFIED: Final = "cgroup.controllers"
CONTROLLERS: Final = ("cpuset", "cpu", "io", "memory", "pids", "hugetlb")


def hierarchies() -> list[Path]:
    """Roots of cgroup hierarchies: one (version 2), or one per controller (version 1)."""
    if (CGROUPS / UNIFIED).exists():
        return [CGROUPS]
    # cpu and cpuacct may be two names of one directory.
    return sorted({entry.resolve() for entry in CGROUPS.iterdir() if entry.is_dir()})


def make_cgroups(slot: NodeSlot) -> None:
    """Creates the node's root cgroup in every hierarchy, with the controllers that the kubelet
    needs.
    """
    try:
        for root in hierarchies():
            own = root / slot.cgroup
            own.mkdir(exist_ok=True)
            if root == CGROUPS:
                _enable_controllers(root, own)
    except OSError as cause:
        raise PlanesError(
            f"making cgroups of node {slot.number}: {cause.filename}: {cause.strerror}",
            remedy="use a machine or container with writable cgroups",
        ) from cause


def _enable_controllers(root: Path, own: Path) -> None:
    """In version 2 a cgroup has the controllers that its parent enables for it."""
    offered = (root / UNIFIED).read_text("ascii").split()
    for controller in (one for one in CONTROLLERS if one in offered):
        for group in (root, own):
            (group / "cgroup.subtree_control").write_text(f"+{controller}", "ascii")


def cgroups_of(slot: NodeSlot) -> Iterator[Path]:
    """All cgroups of a node, the innermost first."""
    for root in hierarchies():
        own = root / slot.cgroup
        if own.is_dir():
            for folder, _, _ in os.walk(own, topdown=False):
                yield Path(folder)


def remove_cgroups(slot: NodeSlot) -> None:
    """Kills the remaining processes and removes the cgroups; the kernel needs a moment for both."""
    end = time.monotonic() + PATIENCE
    while left := list(cgroups_of(slot)):
        if time.monotonic() > end:
            raise PlanesError(
                f"removing cgroups of node {slot.number}: {left[0]} is busy",
                remedy="look at its cgroup.procs; processes in it do not end",
            )
        for group in left:
            _kill_in(group)
            try:
                group.rmdir()
            except OSError:  # busy until its last process is reaped
                continue
        time.sleep(POLL)


def _kill_in(group: Path) -> None:
    try:
        pids = (group / "cgroup.procs").read_text("ascii").split()
    except OSError:
        return
    for pid in pids:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            continue


def remove_interface(slot: NodeSlot) -> None:
    """Removes the host's end of the veth pair, and its routes with it."""
    end = Path(f"/sys/class/net/{slot.interface}")
    if end.exists():
        try:
            _ip("link", "delete", slot.interface)
        except PlanesError:
            # The kernel removes it too, some time after the node's network namespace.
            if end.exists():
                raise


def add_address(slot: NodeSlot) -> None:
    """Adds the address at which pods reach the stack; on loopback, which exists before any veth."""
    _ip("address", "add", f"{slot.stack_address}/32", "dev", "lo")


def remove_address(slot: NodeSlot) -> None:
    if f" {slot.stack_address}/32 " in _ip("-oneline", "address", "show", "dev", "lo"):
        _ip("address", "delete", f"{slot.stack_address}/32", "dev", "lo")


def remove_folder(folder: Path) -> None:
    """Removes a crashed run's folder and unmounts everything below it."""
    for target in reversed(mounts_below(folder)):
        subprocess.run(["umount", "--lazy", target], capture_output=True, check=False)
    if folder.is_dir():
        shutil.rmtree(folder)


def mounts_below(folder: Path) -> list[str]:
    """In the order in which they were mounted."""
    lines = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    targets = [line.split()[1].replace("\\040", " ") for line in lines]
    return [target for target in targets if Path(target).is_relative_to(folder)]


def sweep(slot: NodeSlot) -> None:
    """Removes everything of an ended node except its folder."""
    remove_interface(slot)
    remove_cgroups(slot)
    remove_address(slot)


def find_all() -> list[str]:
    """Everything on the machine that may belong to a node, to compare before and after."""
    leftovers: list[str] = []
    for number in range(COUNT):
        slot = NodeSlot(number)
        leftovers += [f"cgroup {group}" for group in cgroups_of(slot)]
        if Path(f"/sys/class/net/{slot.interface}").exists():
            leftovers.append(f"interface {slot.interface}")
        if f" {slot.stack_address}/32 " in _ip("-oneline", "address", "show", "dev", "lo"):
            leftovers.append(f"address {slot.stack_address}")
        ranges = (slot.pods, slot.services)
        routes = _ip("route", "show").splitlines()
        leftovers += [f"route {line}" for line in routes if line.startswith(ranges)]
    return leftovers


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PlanesError(
            f"running ip {' '.join(arguments)}: {done.stderr.strip()}",
            remedy="nodes need root and a network of the machine's own",
        )
    return done.stdout
