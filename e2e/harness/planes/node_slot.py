"""Addresses, interface and cgroup of one node on the machine. Pure.

At most ten nodes over all stacks that run at the same time; slots do not overlap.

```
host                                    node N (its own network namespace)
10.89.N.1   the stack's address         up0   10.9N.255.2/30
icN         10.9N.255.1/30  ──veth──►   cni0  10.9N.0.1/24    pods
routes to 10.9N.0.0/24, 10.19N.0.0/24   kube-proxy            services
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COUNT: Final = 10
UPLINK: Final = "up0"


@dataclass(frozen=True, slots=True)
class NodeSlot:
    """The N-th node of the machine."""

    number: int

    def __post_init__(self) -> None:
        if not 0 <= self.number < COUNT:
            raise ValueError(f"slot {self.number}: there are {COUNT}")

    @property
    def stack_address(self) -> str:
        """The address at which pods reach the stack; that of its first slot."""
        return f"10.89.{self.number}.1"

    @property
    def interface(self) -> str:
        """The host's end of the veth pair."""
        return f"ic{self.number}"

    @property
    def cgroup(self) -> str:
        return f"ic{self.number}"

    @property
    def host_address(self) -> str:
        return f"10.9{self.number}.255.1"

    @property
    def node_address(self) -> str:
        return f"10.9{self.number}.255.2"

    @property
    def pods(self) -> str:
        return f"10.9{self.number}.0.0/24"

    @property
    def services(self) -> str:
        return f"10.19{self.number}.0.0/24"

    @property
    def api_address(self) -> str:
        """The Service `kubernetes`, always the first address of the range."""
        return f"10.19{self.number}.0.1"
