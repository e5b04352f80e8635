"""Clusters that kind makes: one node each, on a network of docker's that is ours."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.backends.kind import configuration, places
from e2e.backends.kind.commands import NETWORK, run
from e2e.backends.kind.configuration import Asked

PREFIX: Final = "compute-"


def create_network() -> None:
    run(
        [
            "docker",
            "network",
            "create",
            "--subnet",
            places.SUBNET,
            "--gateway",
            places.ADDRESS,
            NETWORK,
        ]
    )


def delete_left() -> list[str]:
    """Deletes what runs left, whole or crashed: clusters of ours, and the network; their names."""
    found = run(["kind", "get", "clusters"]).splitlines()
    left = [name for name in found if name.startswith(PREFIX)]
    for name in left:
        run(["kind", "delete", "cluster", "--name", name])
    if run(["docker", "network", "ls", "--quiet", "--filter", f"name=^{NETWORK}$"]):
        run(["docker", "network", "rm", NETWORK])
    return left


@dataclass(frozen=True, slots=True)
class KindCluster:
    """One cluster and its one node."""

    asked: Asked

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.asked.plane}"

    @property
    def container(self) -> str:
        """The node, as docker calls it; kubelet calls it so too."""
        return f"{self.name}-control-plane"

    @property
    def kubeconfig(self) -> Path:
        """As kind wrote it: for its administrator, who is in a group of kubeadm's."""
        return self.asked.run.of_plane(self.asked.plane, "kind.kubeconfig")

    def create(self) -> None:
        """Writes what the node finds mounted, and returns when the node is Ready."""
        self.asked.pods_logs.mkdir(parents=True, exist_ok=True)
        settings = self.asked.run.of_plane(self.asked.plane, "kind.json")
        settings.write_text(json.dumps(configuration.cluster(self.asked)), "utf-8")
        run(
            [
                *("kind", "create", "cluster", "--name", self.name, "--config", settings),
                *("--kubeconfig", self.kubeconfig, "--wait", "180s"),
            ]
        )
        self.route()

    def delete(self) -> None:
        run(["kind", "delete", "cluster", "--name", self.name])

    def load(self, archives: Iterable[Path]) -> None:
        for archive in archives:
            run(["kind", "load", "image-archive", archive, "--name", self.name])

    def address(self) -> str:
        """What docker gave the node; after a reboot it may be another."""
        template = f'{{{{(index .NetworkSettings.Networks "{NETWORK}").IPAddress}}}}'
        return run(["docker", "inspect", "--format", template, self.container])

    def pid(self) -> int:
        """The node's first process, as this machine counts."""
        return int(run(["docker", "inspect", "--format", "{{.State.Pid}}", self.container]))

    # --- routes: this machine reaches pods and Services, as on nodes of ours ---------------------

    def route(self) -> None:
        address = self.address()
        for reached in (self.asked.ranges.pods, self.asked.ranges.services):
            run(["ip", "route", "replace", reached, "via", address])

    def unroute(self) -> None:
        for reached in (self.asked.ranges.pods, self.asked.ranges.services):
            # They go with the network's interface too; whichever was first.
            if run(["ip", "route", "show", reached]):
                run(["ip", "route", "del", reached])

    # --- power -----------------------------------------------------------------------------------

    def switch_off(self) -> None:
        run(["docker", "kill", self.container])

    def switch_on(self) -> None:
        run(["docker", "start", self.container])
        self.route()
