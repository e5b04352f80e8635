"""Karmada on a kind cluster, by its own command, and cells joined to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.backends.kind.clusters import KindCluster
from e2e.backends.kind.commands import run
from e2e.planes.topology import CITY_LABEL

# That of e2e/planes/karmada/go.mod; a test holds the two equal.
VERSION: Final = "v1.18.2"


@dataclass(frozen=True, slots=True)
class KindKarmada:
    """Karmada's API server in pods of one cluster."""

    host: KindCluster

    @property
    def folder(self) -> Path:
        return self.host.folder / "karmada"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "karmada-apiserver.config"

    def install(self) -> None:
        run(
            [
                *("karmadactl", "init", "--kubeconfig", self.host.kubeconfig),
                *("--karmada-data", self.folder, "--karmada-pki", self.folder / "pki"),
                *("--karmada-apiserver-advertise-address", self.host.address()),
                *("--kube-image-tag", "v1.35.0", "--karmada-image-tag", VERSION),
            ]
        )

    def join(self, cell: KindCluster, city: str) -> None:
        """Makes a cluster a member with its city; Karmada calls it by its plane's name."""
        inner = cell.folder / f"{cell.plane}.inner.kubeconfig"
        inner.write_text(cell.inner_kubeconfig(), "utf-8")
        inner.chmod(0o600)
        run(
            [
                *("karmadactl", "--kubeconfig", self.kubeconfig, "join", cell.plane),
                *("--cluster-kubeconfig", inner),
            ]
        )
        run(
            [
                *("kubectl", "--kubeconfig", self.kubeconfig, "label", "cluster", cell.plane),
                *(f"{CITY_LABEL}={city}", "--overwrite"),
            ]
        )
