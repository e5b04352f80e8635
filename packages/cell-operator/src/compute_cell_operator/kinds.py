"""The kinds this operator touches, as the kit names them; the words come from the API types."""

from __future__ import annotations

from typing import Final

from compute_api_types.meta import Resource
from compute_api_types.neighbours import networking
from compute_api_types.v1alpha.instance import Instance
from compute_api_types.v1alpha.workload_deployment import WorkloadDeployment
from compute_operator_kit.keys import Kind


def _kind(resource: Resource) -> Kind:
    return Kind(
        group=resource.group,
        version=resource.version,
        plural=resource.plural,
        kind=resource.kind,
        namespaced=resource.namespaced,
    )


DEPLOYMENT: Final = _kind(WorkloadDeployment.RESOURCE)
INSTANCE: Final = _kind(Instance.RESOURCE)
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
LOCATION: Final = _kind(networking.Location.RESOURCE)
NETWORK_BINDING: Final = _kind(networking.NetworkBinding.RESOURCE)
NETWORK_CONTEXT: Final = _kind(networking.NetworkContext.RESOURCE)
SUBNET_CLAIM: Final = _kind(networking.SubnetClaim.RESOURCE)
SUBNET: Final = _kind(networking.Subnet.RESOURCE)

NETWORKING_KINDS: Final = (LOCATION, NETWORK_BINDING, NETWORK_CONTEXT, SUBNET_CLAIM, SUBNET)
"""Networking is on where all of these are served (cell.md 6)."""
