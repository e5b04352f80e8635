"""One node for one plane: a kubelet and everything below it, in its own namespaces.

This module has the host's side: files, cgroups, veth interface, routes. `holder.py` has the node's
side. A reboot ends every process of the node and keeps its files.
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
from e2e.harness.access.waiting import until
from e2e.harness.errors import PlanesError
from e2e.harness.node import configuration, holder, leftovers, process_lookup
from e2e.harness.node.configuration import NodeSettings
from e2e.harness.planes.identities import Identity
from e2e.harness.planes.node_slot import UPLINK, NodeSlot
from e2e.harness.planes.plane import RealPlane
from e2e.harness.processes.process import Command

PROXY: Final = Identity("system:kube-proxy")
GONE: Final = timedelta(seconds=20)
_UNSHARE: Final = (
    *("--net", "--mount", "--pid", "--uts", "--ipc"),
    *("--fork", "--kill-child", "--mount-proc"),
)


def identity_of(plane: str) -> Identity:
    """The node is named after its plane, which has one."""
    return Identity(f"system:node:{plane}", ("system:nodes",))


class Node:
    """The node of one plane."""

    def __init__(self, plane: RealPlane, slot: NodeSlot, images: Sequence[Path]) -> None:
        self.plane = plane
        self.slot = slot
        run = plane.runtime.settings.run
        self.folder = run.path / "nodes" / plane.name
        self.logs = run.path / "logs" / "nodes" / plane.name
        self._ground = NodeSettings(
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
        settings_file = self.folder / "holder.json"
        unshare = Path(shutil.which("unshare") or "/usr/bin/unshare")
        inside = (sys.executable, "-I", "-S", holder.__file__, str(settings_file))
        self.process = plane.runtime.add_command(
            Command(f"{plane.name}.node", unshare, (*_UNSHARE, *inside)), self._is_ready
        )

    @property
    def pods_logs(self) -> Path:
        """The kubelet's folder of container logs, as a path on the host."""
        return self.logs / "pods"

    # --- life cycle ------------------------------------------------------------------------------

    async def up(self) -> None:
        """Starts the node, or starts it again after a reboot, and waits until it is Ready."""
        if not self.folder.exists():
            self._write_files()
        leftovers.make_cgroups(self.slot)
        # Node timestamps have a resolution of one second.
        self._begun = datetime.now(UTC).replace(microsecond=0)
        self.process.start()
        await until("the node's namespaces", self._has_namespaces, check=self.process.check)
        self._plug_in()
        await until(
            f"node {self.plane.name} to be Ready", self._is_ready, check=self.plane.runtime.check
        )

    async def reboot(self) -> None:
        """Power-cycles the node; its files stay."""
        await self.down()
        await self.up()

    async def down(self) -> None:
        await self.process.crash()
        await self.clear()

    async def clear(self) -> None:
        """Removes what the namespaces do not, after the node's process has ended."""
        if self._namespace:
            await until("the node's processes to end", self._is_over, check=_nothing, patience=GONE)
        # A kubelet that finds old cgroups needs a minute to remove them.
        await asyncio.to_thread(leftovers.remove_cgroups, self.slot)
        leftovers.remove_interface(self.slot)

    # --- processes -------------------------------------------------------------------------------

    def pid_of(self, program: str) -> int:
        """The process id, on the host, of `kubelet`, `containerd` or `kube-proxy`."""
        for pid in self._members():
            if process_lookup.command_of(pid)[:1] == [str(self._program(program))]:
                return pid
        raise PlanesError(
            f"looking for {program} of node {self.plane.name}: it does not run",
            remedy=f"look into {self.logs}",
        )

    def pids_of_container(self, container: str) -> list[int]:
        """Process ids of a container, by the container id in its pod's status."""
        return process_lookup.pids_of_container(container)

    def root_of(self, pid: int) -> Path:
        """The root directory that a process of the node sees, as a path on the host."""
        return process_lookup.root_of(pid)

    def _members(self) -> list[int]:
        """Processes in the node's mount namespace; containers have their own."""
        return process_lookup.members_of(self._namespace)

    # --- conditions ------------------------------------------------------------------------------

    async def _has_namespaces(self) -> bool:
        pid = self.process.pid
        namespace = process_lookup.namespace_of(pid) if pid else ""
        if not namespace or namespace == process_lookup.namespace_of(os.getpid()):
            return False
        self._namespace = namespace
        return True

    async def _is_ready(self) -> bool:
        async with self.plane.client() as client:
            node = await client.find(f"/api/v1/nodes/{self.plane.name}")
        return is_ready_since(node, self._begun)

    async def _is_over(self) -> bool:
        return not self._members()

    # --- set-up ----------------------------------------------------------------------------------

    def _plug_in(self) -> None:
        slot, pid = self.slot, str(self.process.pid)
        peer = ("peer", "name", UPLINK, "netns", pid)
        _run("ip", "link", "add", slot.interface, "type", "veth", *peer)
        _run("ip", "address", "add", f"{slot.host_address}/30", "dev", slot.interface)
        _run("ip", "link", "set", slot.interface, "up")
        for reached in (slot.pods, slot.services):
            _run("ip", "route", "add", reached, "via", slot.node_address)

    def _write_files(self) -> None:
        settings = self._ground
        for folder in (self.folder, settings.networks, self.pods_logs):
            folder.mkdir(parents=True)
        for name in ("kubelet", "containerd"):
            (self.folder / "disk" / name).mkdir(parents=True)
        proxy = self._kubeconfig("kube-proxy", PROXY)
        written = {
            "containerd.toml": configuration.containerd(settings),
            "cni/10-pods.conflist": configuration.network(settings),
            "kubelet.yaml": configuration.kubelet(settings),
            "kube-proxy.yaml": configuration.kube_proxy(settings, proxy),
            "resolv.conf": "",
            "holder.json": json.dumps(self._holder_settings()),
        }
        values = self.folder / "kernel"
        for name, value in configuration.KERNEL_VALUES.items():
            (values / name).parent.mkdir(parents=True, exist_ok=True)
            (values / name).write_text(f"{value}\n", "ascii")
        for name, content in written.items():
            (self.folder / name).write_text(content, "utf-8")

    def _holder_settings(self) -> dict[str, object]:
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
        return self.plane.runtime.programs[name]

    def _kubeconfig(self, name: str, user: Identity) -> Path:
        runtime, plane = self.plane.runtime, self.plane
        credential = runtime.tokens.of(plane.name, user.user)
        runtime.write_kubeconfig(
            plane.name, f"{name}.kubeconfig", runtime.context(plane.name, plane.port, credential)
        )
        return runtime.settings.run.of_plane(plane.name, f"{name}.kubeconfig")


def is_ready_since(node: JsonObject | None, moment: datetime) -> bool:
    """Whether the node is Ready with a heartbeat after `moment`; the condition of before a reboot
    stays True for most of a minute.
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
    """No process has to run while this waits."""
