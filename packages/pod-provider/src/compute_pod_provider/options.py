"""Options of the Pods of one cell: the settings that rendering and judging depend on. Pure.

Decisions take this value instead of the settings model, so that they import neither the
configuration loader nor anything that reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

from compute_api_types import names
from compute_api_types.sizes import CATALOGUE, Size
from compute_api_types.wire import JsonObject

SYSTEM_NAMESPACES = "kube-"  # prefix of the namespaces of the cluster itself


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOptions:
    """What Pods of this cell are like, and after which times they count as available."""

    is_federated: bool = True  # scope: namespaces `ns-<uuid>` only
    own_namespace: str = "compute-system"
    is_restricted: bool = True  # Pod Security level `restricted`; else `baseline`
    ignores_virtual_machines: bool = False
    has_ephemeral_disks: bool = False
    has_network_policies: bool = False  # one per Instance, made before its Pod
    denied_egress: tuple[str, ...] = ("169.254.0.0/16",)  # metadata services of clouds
    sizes: Mapping[str, Size] = field(default_factory=lambda: MappingProxyType(dict(CATALOGUE)))
    grace: timedelta = timedelta(seconds=30)
    available_after: timedelta = timedelta(seconds=2)
    available_after_restart: timedelta = timedelta(seconds=10)
    provisioning_after: timedelta = timedelta(seconds=4)
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerations: tuple[JsonObject, ...] = ()
    priority_class: str = ""
    runtime_class: str = ""

    def is_in_scope(self, namespace: str) -> bool:
        """Whether Instances of a namespace are run here (pod-provider.md 1)."""
        if self.is_federated:
            return names.parse_hub_namespace(namespace) is not None
        return namespace != self.own_namespace and not namespace.startswith(SYSTEM_NAMESPACES)
