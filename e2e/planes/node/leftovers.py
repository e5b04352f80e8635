"""What a node leaves on the machine, and its removal: also that of a run killed with kill -9.

Namespaces go with their processes, and mounts, rules and the node's network with them. What stays
is the stack's address, cgroups, a cable whose other end never got a node, and the run folder.
Every step looks first and may be done twice.
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

from e2e.planes.errors import PlanesError
from e2e.planes.node.machine import CGROUPS
from e2e.planes.node.slot import COUNT, Slot

PATIENCE: Final = 15.0
POLL: Final = 0.02
UNIFIED: Final = "cgroup.controllers"
CONTROLLERS: Final = ("cpuset", "cpu", "io", "memory", "pids", "hugetlb")


def hierarchies() -> list[Path]:
    """Where cgroups are made: one root (version 2), or one per controller (version 1)."""
    if (CGROUPS / UNIFIED).exists():
        return [CGROUPS]
    # cpu and cpuacct may be two names of one; made once, the second is there already.
    return sorted({entry.resolve() for entry in CGROUPS.iterdir() if entry.is_dir()})


def make_cgroups(slot: Slot) -> None:
    """The node's root in every hierarchy, with the controllers kubelet asks for."""
    try:
        for root in hierarchies():
            own = root / slot.cgroup
            own.mkdir(exist_ok=True)
            if root == CGROUPS:
                _hand_down(root, own)
    except OSError as cause:
        raise PlanesError(
            f"making cgroups of node {slot.number}: {cause.filename}: {cause.strerror}",
            remedy="use a machine, or a container, whose cgroups may be written",
        ) from cause


def _hand_down(root: Path, own: Path) -> None:
    """In version 2 a group has the controllers that its parent hands down."""
    offered = (root / UNIFIED).read_text("ascii").split()
    for controller in (one for one in CONTROLLERS if one in offered):
        for group in (root, own):
            (group / "cgroup.subtree_control").write_text(f"+{controller}", "ascii")


def cgroups_of(slot: Slot) -> Iterator[Path]:
    """All of a node's, the innermost first."""
    for root in hierarchies():
        own = root / slot.cgroup
        if own.is_dir():
            for folder, _, _ in os.walk(own, topdown=False):
                yield Path(folder)


def remove_cgroups(slot: Slot) -> None:
    """Ends whoever is left in them, and removes them; the kernel needs a moment for both."""
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


def remove_interface(slot: Slot) -> None:
    """The host's end of the cable; its routes go with it."""
    end = Path(f"/sys/class/net/{slot.interface}")
    if end.exists():
        try:
            _ip("link", "delete", slot.interface)
        except PlanesError:
            # The kernel takes it away itself when the node's network is gone, in its own time.
            if end.exists():
                raise


def add_address(slot: Slot) -> None:
    """The address at which pods find the stack. On loopback: it is there before any cable is."""
    _ip("address", "add", f"{slot.stack_address}/32", "dev", "lo")


def remove_address(slot: Slot) -> None:
    if f" {slot.stack_address}/32 " in _ip("-oneline", "address", "show", "dev", "lo"):
        _ip("address", "delete", f"{slot.stack_address}/32", "dev", "lo")


def remove_folder(folder: Path) -> None:
    """A crashed run's folder with everything that is mounted below it in our own view."""
    for target in reversed(mounts_below(folder)):
        subprocess.run(["umount", "--lazy", target], capture_output=True, check=False)
    if folder.is_dir():
        shutil.rmtree(folder)


def mounts_below(folder: Path) -> list[str]:
    """In the order in which they were made."""
    lines = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    targets = [line.split()[1].replace("\\040", " ") for line in lines]
    return [target for target in targets if Path(target).is_relative_to(folder)]


def sweep(slot: Slot) -> None:
    """Everything of a node whose processes are gone, but its folder."""
    remove_interface(slot)
    remove_cgroups(slot)
    remove_address(slot)


def find_all() -> list[str]:
    """Everything on the machine that looks like a node's, for whoever compares before and after."""
    found: list[str] = []
    for number in range(COUNT):
        slot = Slot(number)
        found += [f"cgroup {group}" for group in cgroups_of(slot)]
        if Path(f"/sys/class/net/{slot.interface}").exists():
            found.append(f"interface {slot.interface}")
        if f" {slot.stack_address}/32 " in _ip("-oneline", "address", "show", "dev", "lo"):
            found.append(f"address {slot.stack_address}")
        ranges = (slot.pods, slot.services)
        routes = _ip("route", "show").splitlines()
        found += [f"route {line}" for line in routes if line.startswith(ranges)]
    return found


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PlanesError(
            f"running ip {' '.join(arguments)}: {done.stderr.strip()}",
            remedy="nodes need root and a network of the machine's own",
        )
    return done.stdout
