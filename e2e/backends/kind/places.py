"""Where everything of kind's clusters is: addresses, folders inside nodes. Pure.

```
this machine                            node N (a container on the network `compute-kind`)
10.89.250.1   the stack's address       10.89.250.x      what docker gives it
  :port of a plane      ──docker──►     :6443            its API server
  :port of the hub      ──docker──►     :32443           Karmada's, in a pod
routes to both of node N's ranges       10.22N.0.0/16    pods
                                        10.23N.0.0/16    services
```

Milo's gateway, root and projects are processes of this machine at 10.89.250.1, as all fault links
are; pods reach both through the network's gateway, which that address is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SUBNET: Final = "10.89.250.0/24"
ADDRESS: Final = "10.89.250.1"
API_PORT: Final = 6443
# What karmadactl opens Karmada's API server at, on every address of its node.
KARMADA_PORT: Final = 32443
# Inside nodes, and in the API servers' pods on them.
_ACCESS: Final = "/etc/compute-planes"
AUDIT: Final = "/var/log/compute-audit"
PODS_LOGS: Final = "/var/log/pods"
# Where kubeadm looks for what is there already before it makes any.
PKI: Final = "/etc/kubernetes/pki"


def access_of(plane: str) -> str:
    """What the API server of a plane reads."""
    return f"{_ACCESS}/{plane}"


@dataclass(frozen=True, slots=True)
class Ranges:
    """Addresses of pods and Services on the N-th cluster; no two overlap, so that routes work."""

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
