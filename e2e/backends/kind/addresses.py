"""Addresses and folders of kind clusters. Pure.

```
this machine                            node N (a container on the network `compute-kind`)
10.89.250.1   the stack's address       10.89.250.x      what docker gives it
  :port of a plane      ──docker──►     :6443            its API server
  :port of the hub      ──docker──►     :32443           Karmada's, in a pod
routes to both of node N's ranges       10.22N.0.0/16    pods
                                        10.23N.0.0/16    services
```

Milo's gateway, root, projects and all fault links are processes of this machine at 10.89.250.1, the
gateway of the network, so pods reach them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SUBNET: Final = "10.89.250.0/24"
ADDRESS: Final = "10.89.250.1"
API_PORT: Final = 6443
# karmadactl publishes Karmada's API server at this port of its node.
KARMADA_PORT: Final = 32443
# In nodes, and in the pods of API servers on them.
_ACCESS: Final = "/etc/compute-planes"
AUDIT: Final = "/var/log/compute-audit"
PODS_LOGS: Final = "/var/log/pods"
# kubeadm uses the files it finds here and creates the missing ones.
PKI: Final = "/etc/kubernetes/pki"


def access_of(plane: str) -> str:
    """The folder that the API server of a plane reads."""
    return f"{_ACCESS}/{plane}"


@dataclass(frozen=True, slots=True)
class Ranges:
    """Address ranges of pods and Services of cluster N; they do not overlap, so that routes
    work.
    """

    number: int

    def __post_init__(self) -> None:
        if not 0 <= self.number < 10:
            raise ValueError(f"cluster {self.number}: there are ten")

    @property
    def pods(self) -> str:
        return f"10.22{self.number}.0.0/16"

    @property
    def services(self) -> str:
        return f"10.23{self.number}.0.0/16"
