"""kind clusters with one node each, on a docker network of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.backends.kind import addresses, configuration
from e2e.backends.kind.commands import NETWORK, run
from e2e.backends.kind.configuration import ClusterSpec

PREFIX: Final = "compute-"


def create_network() -> None:
    run(
        [
            "docker",
            "network",
            "create",
            "--subnet",
            addresses.SUBNET,
            "--gateway",
            addresses.ADDRESS,
            NETWORK,
        ]
    )


def delete_left() -> list[str]:
    """Deletes the clusters and the network of earlier runs; returns their names."""
    clusters = run(["kind", "get", "clusters"]).splitlines()
    left = [name for name in clusters if name.startswith(PREFIX)]
    for name in left:
        run(["kind", "delete", "cluster", "--name", name])
    if run(["docker", "network", "ls", "--quiet", "--filter", f"name=^{NETWORK}$"]):
        run(["docker", "network", "rm", NETWORK])
    return left


@dataclass(frozen=True, slots=True)
class KindCluster:
    """One cluster with its node."""

    spec: ClusterSpec

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.spec.plane}"

    @property
    def container(self) -> str:
        """The name of the node in docker and in Kubernetes."""
        return f"{self.name}-control-plane"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig that kind wrote."""
        return self.spec.run.of_plane(self.spec.plane, "kind.kubeconfig")

    def create(self) -> None:
        """Writes the mounted files, creates the cluster and waits until the node is Ready."""
        self.spec.pods_logs.mkdir(parents=True, exist_ok=True)
        settings = self.spec.run.of_plane(self.spec.plane, "kind.json")
        settings.write_text(json.dumps(configuration.cluster(self.spec)), "utf-8")
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
        """The node's address in docker; it may change with a reboot."""
        template = f'{{{{(index .NetworkSettings.Networks "{NETWORK}").IPAddress}}}}'
        return run(["docker", "inspect", "--format", template, self.container])

    def pid(self) -> int:
        """The process id, on this machine, of the node's first process."""
        return int(run(["docker", "inspect", "--format", "{{.State.Pid}}", self.container]))

    # --- routes from this machine to pods and Services -------------------------------------------

    def route(self) -> None:
        address = self.address()
        for reached in (self.spec.ranges.pods, self.spec.ranges.services):
            run(["ip", "route", "replace", reached, "via", address])

    def unroute(self) -> None:
        for reached in (self.spec.ranges.pods, self.spec.ranges.services):
            # The routes may be gone already, with the interface of the network.
            if run(["ip", "route", "show", reached]):
                run(["ip", "route", "del", reached])

    # --- power -----------------------------------------------------------------------------------

    def switch_off(self) -> None:
        run(["docker", "kill", self.container])

    def switch_on(self) -> None:
        run(["docker", "start", self.container])
        self.route()
