"""Names of the planes of this operator, and the kinds that it reads or writes there.

The names are no DNS labels, so that no project can have one of them.
"""

from __future__ import annotations

from typing import Final

from compute_api_types.neighbours import autoscaling, networking
from compute_api_types.v1alpha.instance import Instance
from compute_api_types.v1alpha.workload_deployment import WorkloadDeployment
from compute_operator_kit.core.keys import Kind, PlaneName

CELL: Final = PlaneName("@cell")  # the home plane, with deployments and Instances
HUB: Final = PlaneName("@hub")

DEPLOYMENT: Final = Kind.of(WorkloadDeployment.RESOURCE)
INSTANCE: Final = Kind.of(Instance.RESOURCE)
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
# Of these, no value is read: kubelet and providers resolve names.
CONFIG_MAP: Final = Kind("", "v1", "configmaps", "ConfigMap", is_metadata_only=True)
SECRET: Final = Kind("", "v1", "secrets", "Secret", is_metadata_only=True)
AUTOSCALER: Final = Kind.of(autoscaling.HorizontalPodAutoscaler.RESOURCE)
LOCATION: Final = Kind.of(networking.Location.RESOURCE)
NETWORK_BINDING: Final = Kind.of(networking.NetworkBinding.RESOURCE)
NETWORK_CONTEXT: Final = Kind.of(networking.NetworkContext.RESOURCE)
SUBNET_CLAIM: Final = Kind.of(networking.SubnetClaim.RESOURCE)
SUBNET: Final = Kind.of(networking.Subnet.RESOURCE)

NETWORKING_KINDS: Final = (LOCATION, NETWORK_BINDING, NETWORK_CONTEXT, SUBNET_CLAIM, SUBNET)
"""Networking is on where all of these are served (cell.md 6)."""
