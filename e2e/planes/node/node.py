"""One node: a kubelet with everything below it, in namespaces of its own, for one plane.

The host's side is here: files, cgroups, the cable, the routes. The node's side is `holder.py`. A
node is rebooted as a machine is: everything in it ends, its disk stays.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from compute_sim_planes.json_types import JsonObject, objects_at, string_at
from e2e.planes.errors import PlanesError
from e2e.planes.identities import Identity
from e2e.planes.node import configuration, holder, leftovers, looking
from e2e.planes.node.configuration import Ground
from e2e.planes.node.slot import UPLINK, Slot
from e2e.planes.plane import Plane
from e2e.planes.process import Command
from e2e.planes.waiting import until

PROXY: Final = Identity("system:kube-proxy")
GONE: Final = timedelta(seconds=20)
_UNSHARE: Final = (
    *("--net", "--mount", "--pid", "--uts", "--ipc"),
    *("--fork", "--kill-child", "--mount-proc"),
)


def identity_of(plane: str) -> Identity:
    """A node is called as its plane is: there is one."""
    return Identity(f"system:node:{plane}", ("system:nodes",))


class Node:
    """The node of one plane."""

    def __init__(self, plane: Plane, slot: Slot, images: Sequence[Path]) -> None:
        self.plane = plane
        self.slot = slot
        run = plane.site.ground.run
        self.folder = run.path / "nodes" / plane.name
        self.logs = run.path / "logs" / "nodes" / plane.name
        self._ground = Ground(
            plane.name,
            slot,
            self.folder,
            run.pki("ca.crt"),
            run.pki("server.crt"),
            run.pki("server.key"),
        )
        self._images = images
        self._namespace = ""
        self._begun = datetime.now(UTC)
        settings = self.folder / "holder.json"
        unshare = Path(shutil.which("unshare") or "/usr/bin/unshare")
        inside = (sys.executable, "-I", "-S", holder.__file__, str(settings))
        self.process = plane.site.add_command(
            Command(f"{plane.name}.node", unshare, (*_UNSHARE, *inside)), self._is_ready
        )

    @property
    def pods_logs(self) -> Path:
        """Where kubelet keeps what containers print, seen from outside."""
        return self.logs / "pods"

    # --- life ------------------------------------------------------------------------------------

    async def up(self) -> None:
        """From nothing, or from what a reboot left, to a node that takes pods."""
        if not self.folder.exists():
            self._write_files()
        leftovers.make_cgroups(self.slot)
        # To the second, as nodes tell the time.
        self._begun = datetime.now(UTC).replace(microsecond=0)
        self.process.start()
        await until("the node's namespaces", self._has_namespaces, check=self.process.check)
        self._plug_in()
        await until(
            f"node {self.plane.name} to be Ready", self._is_ready, check=self.plane.site.check
        )

    async def reboot(self) -> None:
        """As by the power switch; what was on its disk is there afterwards."""
        await self.down()
        await self.up()

    async def down(self) -> None:
        await self.process.crash()
        await self.clear()

    async def clear(self) -> None:
        """Once its process ended: waits for the rest, removes what namespaces do not take along."""
        if self._namespace:
            await until("the node's processes to end", self._is_over, check=_nothing, patience=GONE)
        # A kubelet that meets the cgroups of an earlier life takes a minute to tidy them.
        await asyncio.to_thread(leftovers.remove_cgroups, self.slot)
        leftovers.remove_interface(self.slot)

    # --- looking into it -------------------------------------------------------------------------

    def pid_of(self, program: str) -> int:
        """A program of the node (`kubelet`, `containerd`, `kube-proxy`), as the host counts."""
        for pid in self._members():
            if looking.command_of(pid)[:1] == [str(self._program(program))]:
                return pid
        raise PlanesError(
            f"looking for {program} of node {self.plane.name}: it does not run",
            remedy=f"look into {self.logs}",
        )

    def pids_of_container(self, container: str) -> list[int]:
        """Processes of a container, by the id that its pod's status tells."""
        return looking.pids_of_container(container)

    def root_of(self, pid: int) -> Path:
        """The file system as a process of the node sees it."""
        return looking.root_of(pid)

    def _members(self) -> list[int]:
        """Processes in the node's mount namespace; containers have their own."""
        return looking.members_of(self._namespace)

    # --- questions -------------------------------------------------------------------------------

    async def _has_namespaces(self) -> bool:
        pid = self.process.pid
        found = looking.namespace_of(pid) if pid else ""
        if not found or found == looking.namespace_of(os.getpid()):
            return False
        self._namespace = found
        return True

    async def _is_ready(self) -> bool:
        async with self.plane.client() as client:
            found = await client.find(f"/api/v1/nodes/{self.plane.name}")
        return is_ready_since(found, self._begun)

    async def _is_over(self) -> bool:
        return not self._members()

    # --- making ----------------------------------------------------------------------------------

    def _plug_in(self) -> None:
        slot, pid = self.slot, str(self.process.pid)
        peer = ("peer", "name", UPLINK, "netns", pid)
        _run("ip", "link", "add", slot.interface, "type", "veth", *peer)
        _run("ip", "address", "add", f"{slot.host_address}/30", "dev", slot.interface)
        _run("ip", "link", "set", slot.interface, "up")
        for reached in (slot.pods, slot.services):
            _run("ip", "route", "add", reached, "via", slot.node_address)

    def _write_files(self) -> None:
        ground = self._ground
        for folder in (self.folder, ground.networks, self.pods_logs):
            folder.mkdir(parents=True)
        for name in ("kubelet", "containerd"):
            (self.folder / "disk" / name).mkdir(parents=True)
        proxy = self._kubeconfig("kube-proxy", PROXY)
        written = {
            "containerd.toml": configuration.containerd(ground),
            "cni/10-pods.conflist": configuration.network(ground),
            "kubelet.yaml": configuration.kubelet(ground),
            "kube-proxy.yaml": configuration.kube_proxy(ground, proxy),
            "resolv.conf": "",
            "holder.json": json.dumps(self._told()),
        }
        values = self.folder / "kernel"
        for name, value in configuration.KERNEL_VALUES.items():
            (values / name).parent.mkdir(parents=True, exist_ok=True)
            (values / name).write_text(f"{value}\n", "ascii")
        for name, content in written.items():
            (self.folder / name).write_text(content, "utf-8")

    def _told(self) -> dict[str, object]:
        kubeconfig = self._kubeconfig("kubelet", identity_of(self.plane.name))
        disk = self.folder / "disk"
        return {
            "binds": {
                "/var/lib/kubelet": str(disk / "kubelet"),
                "/var/lib/containerd": str(disk / "containerd"),
                "/var/log/pods": str(self.pods_logs),
            },
            "kernel_values": {
                name: str(self.folder / "kernel" / name) for name in configuration.KERNEL_VALUES
            },
            "uplink": UPLINK,
            "address": self.slot.node_address,
            "gateway": self.slot.host_address,
            "socket": configuration.SOCKET,
            "images": [str(archive) for archive in self._images],
            "imported": str(disk / "imported"),
            "logs": str(self.logs),
            "commands": {
                "containerd": [
                    str(self._program("containerd")),
                    *("--config", str(self.folder / "containerd.toml")),
                ],
                "kubelet": [
                    str(self._program("kubelet")),
                    f"--config={self.folder / 'kubelet.yaml'}",
                    f"--kubeconfig={kubeconfig}",
                    f"--hostname-override={self.plane.name}",
                    f"--node-ip={self.slot.node_address}",
                ],
                "kube-proxy": [
                    str(self._program("kube-proxy")),
                    f"--config={self.folder / 'kube-proxy.yaml'}",
                ],
            },
        }

    def _program(self, name: str) -> Path:
        if name == "containerd":
            return Path(shutil.which(name) or "/usr/bin/containerd")
        return self.plane.site.programs[name]

    def _kubeconfig(self, name: str, user: Identity) -> Path:
        site, plane = self.plane.site, self.plane
        credential = site.tokens.of(plane.name, user.user)
        site.write_kubeconfig(
            plane.name, f"{name}.kubeconfig", site.context(plane.name, plane.port, credential)
        )
        return site.ground.run.of_plane(plane.name, f"{name}.kubeconfig")


def is_ready_since(node: JsonObject | None, moment: datetime) -> bool:
    """Whether a node says Ready, and said it in its present life: nobody takes the word of the last
    one back before most of a minute has gone.
    """
    return any(
        string_at(condition, "type") == "Ready"
        and string_at(condition, "status") == "True"
        and datetime.fromisoformat(string_at(condition, "lastHeartbeatTime")) >= moment
        for condition in objects_at(node, "status", "conditions")
    )


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PlanesError(
            f"running {' '.join(command)}: {done.stderr.strip()}", remedy="see its words"
        )


def _nothing() -> None:
    """Nobody needs to live while others end."""
