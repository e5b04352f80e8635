"""What kind and kubeadm are told of one cluster, so that it is a plane of the stack. Pure.

Files of the run folder are mounted into the node: the stack's authority and its key for service
accounts where kubeadm takes what is there, tokens and the audit policy where the API server reads
them, folders for what is written. Unversioned patches with `extraArgs` as a map are what kind has
for every Kubernetes so far; from 1.36 on it translates them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from compute_sim_planes.json_types import JsonObject, JsonValue
from e2e.backends.kind import places
from e2e.backends.kind.places import Ranges
from e2e.planes.run_folder import RunFolder

# The Kubernetes that the real planes are built from.
NODE_IMAGE: Final = "kindest/node:v1.35.0"
# Files in the folder of a plane.
TOKENS: Final = "tokens.csv"
POLICY: Final = "audit-policy.yaml"
ISSUER: Final = "issuer.kubeconfig"


@dataclass(frozen=True, slots=True)
class Asked:
    """One cluster to be."""

    plane: str
    run: RunFolder
    address: str
    port: int  # of its API server
    ranges: Ranges
    # A plane whose API server is in pods of this cluster, and its port; none where that is empty.
    guest: str = ""
    guest_port: int = 0

    @property
    def pods_logs(self) -> Path:
        return self.run.path / "logs" / "nodes" / self.plane / "pods"


def cluster(asked: Asked) -> JsonObject:
    """The file that `kind create cluster` reads."""
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": {
            # kind puts the address into the API server's certificate.
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


def _opened(asked: Asked) -> list[JsonValue]:
    if not asked.guest:
        return []
    port, address = places.KARMADA_PORT, asked.address
    return [{"containerPort": port, "hostPort": asked.guest_port, "listenAddress": address}]


def _mounts(asked: Asked) -> list[JsonValue]:
    pki = asked.run.pki
    read = {
        **{
            f"{places.PKI}/{authority}.{part}": pki(f"{authority}.{part}")
            # The second is who Milo's gateway speaks as when it shows a token.
            for authority in ("ca", "front-proxy-ca")
            for part in ("crt", "key")
        },
        f"{places.PKI}/sa.pub": pki("service-accounts.crt"),
        f"{places.PKI}/sa.key": pki("service-accounts.key"),
        **{
            places.access_of(plane): asked.run.of_plane(plane, TOKENS).parent
            for plane in (asked.plane, asked.guest)
            if plane
        },
    }
    written = {places.AUDIT: asked.run.path / "audit", places.PODS_LOGS: asked.pods_logs}
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
                # As on planes of ours: tokens of one cluster are nothing on another.
                "service-account-issuer": f"https://{plane}.local",
                # The Service `kubernetes` leads where the stack says: through a link.
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
    """What an API server in a pod needs of its node: name, path, whether it only reads there."""
    access = ("compute-access", places.access_of(plane), True)
    return access, ("compute-audit", places.AUDIT, False)


def access_arguments(plane: str) -> dict[str, JsonValue]:
    """What any API server in a cluster is told beside its own: who is who, and what to write."""
    access = places.access_of(plane)
    return {
        "token-auth-file": f"{access}/{TOKENS}",
        "audit-policy-file": f"{access}/{POLICY}",
        "audit-log-path": f"{places.AUDIT}/{plane}.log",
        # One file per run: the reader must not look for rotated ones.
        "audit-log-maxsize": "4096",
    }
