"""Clusters that kind makes: one node each, on docker's network `kind`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.backends.kind.commands import run

PREFIX: Final = "compute-"
# The Kubernetes that the real planes are built from.
NODE_IMAGE: Final = "kindest/node:v1.35.0"
NETWORK: Final = "kind"


@dataclass(frozen=True, slots=True)
class KindCluster:
    """One cluster, and where its kubeconfig is written."""

    plane: str
    folder: Path

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.plane}"

    @property
    def kubeconfig(self) -> Path:
        """For this machine: its server is a port of loopback."""
        return self.folder / f"{self.plane}.kubeconfig"

    def create(self) -> None:
        run(
            [
                *("kind", "create", "cluster", "--name", self.name),
                *("--image", NODE_IMAGE, "--kubeconfig", self.kubeconfig, "--wait", "120s"),
            ]
        )

    def delete(self) -> None:
        run(["kind", "delete", "cluster", "--name", self.name, "--kubeconfig", self.kubeconfig])

    def load(self, archives: Iterable[Path]) -> None:
        for archive in archives:
            run(["kind", "load", "image-archive", archive, "--name", self.name])

    def address(self) -> str:
        """Where other clusters find its API server: on docker's network, port 6443."""
        template = f"{{{{.NetworkSettings.Networks.{NETWORK}.IPAddress}}}}"
        return run(["docker", "inspect", "--format", template, f"{self.name}-control-plane"])

    def inner_kubeconfig(self) -> str:
        """For whoever is on docker's network too."""
        return run(["kind", "get", "kubeconfig", "--internal", "--name", self.name])


def delete_left(planes: Sequence[str], folder: Path) -> list[str]:
    """Deletes clusters of ours that a crashed run left; their names."""
    found = set(run(["kind", "get", "clusters"]).splitlines())
    left = [plane for plane in planes if f"{PREFIX}{plane}" in found]
    for plane in left:
        KindCluster(plane, folder).delete()
    return left
