"""What containerd, kubelet, kube-proxy and CNI of one node are told. Pure.

Settings as `docs/spec/in-cluster.md` 1 has them; a reason stands beside one where it gives none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from compute_sim_planes.json_types import JsonObject
from e2e.planes.node import pause
from e2e.planes.node.machine import CNI
from e2e.planes.node.slot import Slot

SOCKET: Final = "/run/containerd/containerd.sock"
# What kubelet finds there is what it would set; bound over the machine's own values.
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
class Ground:
    """What all files of one node refer to."""

    name: str
    slot: Slot
    folder: Path
    authority: Path
    certificate: Path
    key: Path

    @property
    def networks(self) -> Path:
        return self.folder / "cni"


def containerd(ground: Ground) -> str:
    return _CONTAINERD.format(pause=pause.NAME, plugins=CNI, networks=ground.networks)


def network(ground: Ground) -> str:
    """One bridge per node, as CNI reads it."""
    ranges: JsonObject = {"type": "host-local", "ranges": [[{"subnet": ground.slot.pods}]]}
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


def kubelet(ground: Ground) -> str:
    document: JsonObject = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{ground.slot.cgroup}",
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
            "x509": {"clientCAFile": str(ground.authority)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "tlsCertFile": str(ground.certificate),
        "tlsPrivateKeyFile": str(ground.key),
        # There is no cluster DNS, and the machine's resolver is out of a pod's reach.
        "resolvConf": str(ground.folder / "resolv.conf"),
        # A changed Secret or token reaches its pod within this; a minute is long for a test.
        "syncFrequency": "10s",
        # One file per container: whoever reads it must not look for rotated ones.
        "containerLogMaxSize": "1Gi",
        "nodeStatusUpdateFrequency": "5s",
    }
    return yaml.safe_dump(document, sort_keys=False)


def kube_proxy(ground: Ground, kubeconfig: Path) -> str:
    document: JsonObject = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clusterCIDR": ground.slot.pods,
        "hostnameOverride": ground.name,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        # These are the machine's, not the namespace's.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
    return yaml.safe_dump(document, sort_keys=False)
