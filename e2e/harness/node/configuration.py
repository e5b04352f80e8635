"""Configuration of containerd, kubelet, kube-proxy and CNI for one node. Pure.

The settings are those of `docs/spec/in-cluster.md` 1; a comment gives the reason if that page does
not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from compute_sim_planes.json_types import JsonObject
from e2e.harness.node import pause
from e2e.harness.node.machine import CNI
from e2e.harness.planes.node_slot import NodeSlot

SOCKET: Final = "/run/containerd/containerd.sock"
# The values that the kubelet would set, bind-mounted over the machine's own.
KERNEL_VALUES: Final = {
    "vm/overcommit_memory": "1",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
_CONTAINERD: Final = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{plugins}"
  conf_dir = "{networks}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
"""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Paths and addresses for all files of one node."""

    name: str
    slot: NodeSlot
    folder: Path
    authority: Path
    certificate: Path
    key: Path

    @property
    def networks(self) -> Path:
        return self.folder / "cni"


def containerd(settings: NodeSettings) -> str:
    return _CONTAINERD.format(pause=pause.NAME, plugins=CNI, networks=settings.networks)


def network(settings: NodeSettings) -> str:
    """The CNI configuration: one bridge per node."""
    ranges: JsonObject = {"type": "host-local", "ranges": [[{"subnet": settings.slot.pods}]]}
    bridge: JsonObject = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {**ranges, "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return json.dumps(
        {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, {"type": "loopback"}]}
    )


def kubelet(settings: NodeSettings) -> str:
    document: JsonObject = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{settings.slot.cgroup}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "makeIPTablesUtilChains": False,
        "localStorageCapacityIsolation": False,
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(settings.authority)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "tlsCertFile": str(settings.certificate),
        "tlsPrivateKeyFile": str(settings.key),
        # There is no cluster DNS, and pods cannot reach the machine's resolver.
        "resolvConf": str(settings.folder / "resolv.conf"),
        # A changed Secret or token reaches its pod within this time; a minute is long for a test.
        "syncFrequency": "10s",
        # One file per container; readers do not look for rotated files.
        "containerLogMaxSize": "1Gi",
        "nodeStatusUpdateFrequency": "5s",
    }
    return yaml.safe_dump(document, sort_keys=False)


def kube_proxy(settings: NodeSettings, kubeconfig: Path) -> str:
    document: JsonObject = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clusterCIDR": settings.slot.pods,
        "hostnameOverride": settings.name,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        # These belong to the machine, not to the namespace.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
    return yaml.safe_dump(document, sort_keys=False)
