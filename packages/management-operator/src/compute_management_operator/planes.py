"""Names of the planes of this operator, and the kinds that it reads or writes there.

A project plane has the name of its project, a DNS label. The names of the other planes are no DNS
labels, so that a project `hub` cannot be taken for the hub.
"""

from __future__ import annotations

from typing import Final

from compute_api_types.neighbours import karmada, milo, networking
from compute_api_types.v1alpha.instance import Instance
from compute_api_types.v1alpha.workload import Workload
from compute_api_types.v1alpha.workload_deployment import WorkloadDeployment
from compute_operator_kit.core.keys import Kind, PlaneName

HOME: Final = PlaneName("@home")
ROOT: Final = PlaneName("@root")
HUB: Final = PlaneName("@hub")
SINGLE: Final = PlaneName("single")  # the one project of mode `single` (management.md 1.2)

WORKLOAD: Final = Kind.of(Workload.RESOURCE)
DEPLOYMENT: Final = Kind.of(WorkloadDeployment.RESOURCE)
INSTANCE: Final = Kind.of(Instance.RESOURCE)
LOCATION: Final = Kind.of(networking.Location.RESOURCE)
NETWORK: Final = Kind.of(networking.Network.RESOURCE)
PROJECT: Final = Kind.of(milo.Project.RESOURCE)
POLICY: Final = Kind.of(karmada.PropagationPolicy.RESOURCE)
CLUSTER: Final = Kind.of(karmada.Cluster.RESOURCE)
BINDING: Final = Kind.of(karmada.RESOURCE_BINDING)
CLAIM: Final = Kind(
    "quota.miloapis.com", "v1alpha1", "resourceclaims", "ResourceClaim", namespaced=True
)
LEASE: Final = Kind("coordination.k8s.io", "v1", "leases", "Lease")
# Read as metadata: no cache holds a value.
CONFIG_MAP: Final = Kind("", "v1", "configmaps", "ConfigMap", is_metadata_only=True)
SECRET: Final = Kind("", "v1", "secrets", "Secret", is_metadata_only=True)
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
