"""Configuration for kind and kubeadm that makes a cluster a plane of the stack. Pure.

Files of the run folder are mounted into the node: CA and service account key where kubeadm reuses
them, tokens and audit policy where the API server reads them, folders for logs. kind accepts
unversioned patches with `extraArgs` as a map for every Kubernetes so far and translates them from
1.36 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from compute_sim_planes.json_types import JsonObject, JsonValue
from e2e.backends.kind import addresses
from e2e.backends.kind.addresses import Ranges
from e2e.harness.processes.run_folder import RunFolder

# The Kubernetes that the real planes are built from.
NODE_IMAGE: Final = "kindest/node:v1.35.0"
# Files in the folder of a plane.
TOKENS: Final = "tokens.csv"
POLICY: Final = "audit-policy.yaml"
ISSUER: Final = "issuer.kubeconfig"


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The cluster to create."""

    plane: str
    run: RunFolder
    address: str
    port: int  # of its API server
    ranges: Ranges
    # A second plane with its API server in pods of this cluster, and its port; empty for none.
    guest: str = ""
    guest_port: int = 0

    @property
    def pods_logs(self) -> Path:
        return self.run.path / "logs" / "nodes" / self.plane / "pods"


def cluster(asked: ClusterSpec) -> JsonObject:
    """The file that `kind create cluster` reads."""
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": {
            # kind adds the address to the API server's certificate.
            "apiServerAddress": asked.address,
            "apiServerPort": asked.port,
            "podSubnet": asked.ranges.pods,
            "serviceSubnet": asked.ranges.services,
        },
        "nodes": [
            {
                "role": "control-plane",
                "image": NODE_IMAGE,
                "extraMounts": _mounts(asked),
                "extraPortMappings": _opened(asked),
            }
        ],
        "kubeadmConfigPatches": [yaml.safe_dump(_kubeadm(asked.plane), sort_keys=False)],
    }


def _opened(asked: ClusterSpec) -> list[JsonValue]:
    if not asked.guest:
        return []
    port, address = addresses.KARMADA_PORT, asked.address
    return [{"containerPort": port, "hostPort": asked.guest_port, "listenAddress": address}]


def _mounts(asked: ClusterSpec) -> list[JsonValue]:
    pki = asked.run.pki
    read = {
        **{
            f"{addresses.PKI}/{authority}.{part}": pki(f"{authority}.{part}")
            # front-proxy-ca authenticates Milo's gateway when it forwards a user.
            for authority in ("ca", "front-proxy-ca")
            for part in ("crt", "key")
        },
        f"{addresses.PKI}/sa.pub": pki("service-accounts.crt"),
        f"{addresses.PKI}/sa.key": pki("service-accounts.key"),
        **{
            addresses.access_of(plane): asked.run.of_plane(plane, TOKENS).parent
            for plane in (asked.plane, asked.guest)
            if plane
        },
    }
    written = {addresses.AUDIT: asked.run.path / "audit", addresses.PODS_LOGS: asked.pods_logs}
    return [
        *(_mount(here, there, is_read_only=True) for there, here in read.items()),
        *(_mount(here, there, is_read_only=False) for there, here in written.items()),
    ]


def _mount(here: Path, there: str, *, is_read_only: bool) -> JsonObject:
    return {"hostPath": str(here), "containerPath": there, "readOnly": is_read_only}


def _kubeadm(plane: str) -> JsonObject:
    return {
        "kind": "ClusterConfiguration",
        "apiServer": {
            "extraArgs": {
                **access_arguments(plane),
                # A separate issuer per plane, so that tokens of one cluster are invalid on another.
                "service-account-issuer": f"https://{plane}.local",
                # The stack sets the endpoint of the Service `kubernetes`, to a link.
                "endpoint-reconciler-type": "none",
            },
            "extraVolumes": [
                {
                    "name": name,
                    "hostPath": path,
                    "mountPath": path,
                    "readOnly": is_read_only,
                    "pathType": "Directory",
                }
                for name, path, is_read_only in volumes(plane)
            ],
        },
    }


def volumes(plane: str) -> tuple[tuple[str, str, bool], ...]:
    """Host path volumes of an API server's pod: name, path, read-only."""
    access = ("compute-access", addresses.access_of(plane), True)
    return access, ("compute-audit", addresses.AUDIT, False)


def access_arguments(plane: str) -> dict[str, JsonValue]:
    """Flags that every API server in a cluster gets: authentication and audit log."""
    access = addresses.access_of(plane)
    return {
        "token-auth-file": f"{access}/{TOKENS}",
        "audit-policy-file": f"{access}/{POLICY}",
        "audit-log-path": f"{addresses.AUDIT}/{plane}.log",
        # One file per run; the reader does not look for rotated files.
        "audit-log-maxsize": "4096",
    }
