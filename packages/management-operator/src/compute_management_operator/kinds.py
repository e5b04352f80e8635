"""The kinds this operator touches, as the kit names them; the words come from the API types."""

from __future__ import annotations

from typing import Final

from compute_api_types.meta import Resource
from compute_api_types.neighbours import karmada, milo, networking
from compute_api_types.v1alpha.instance import Instance
from compute_api_types.v1alpha.workload import Workload
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


WORKLOAD: Final = _kind(Workload.RESOURCE)
DEPLOYMENT: Final = _kind(WorkloadDeployment.RESOURCE)
INSTANCE: Final = _kind(Instance.RESOURCE)
LOCATION: Final = _kind(networking.Location.RESOURCE)
NETWORK: Final = _kind(networking.Network.RESOURCE)
PROJECT: Final = _kind(milo.Project.RESOURCE)
POLICY: Final = _kind(karmada.PropagationPolicy.RESOURCE)
CLUSTER: Final = _kind(karmada.Cluster.RESOURCE)
BINDING: Final = _kind(karmada.RESOURCE_BINDING)
CLAIM: Final = Kind(
    "quota.miloapis.com", "v1alpha1", "resourceclaims", "ResourceClaim", namespaced=True
)
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
