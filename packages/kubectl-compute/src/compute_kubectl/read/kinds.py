"""The kinds that are read, with their API paths; a kind that is not here is never requested.

Works, Secrets and ConfigMaps are left out on purpose: a Work holds the objects of every tenant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from compute_kubectl.snapshot.planes import Role

COMPUTE: Final = "/apis/compute.datumapis.com/v1alpha"
NETWORKING: Final = "/apis/networking.datumapis.com/v1alpha"
QUOTA: Final = "/apis/quota.miloapis.com/v1alpha1"
CLUSTER: Final = "/apis/cluster.karmada.io/v1alpha1"
POLICY: Final = "/apis/policy.karmada.io/v1alpha1"
WORK: Final = "/apis/work.karmada.io/v1alpha2"
CORE: Final = "/api/v1"

BUCKET_NAMESPACE: Final = "milo-system"


@dataclass(frozen=True, slots=True)
class ReadKind:
    """A kind by its plural, and where an API server has it."""

    plural: str
    kind: str
    base: str
    is_namespaced: bool = True

    def path(self, namespace: str = "", name: str = "") -> str:
        scope = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        one = f"/{quote(name, safe='')}" if name else ""
        return f"{self.base}{scope if self.is_namespaced else ''}/{self.plural}{one}"


NAMESPACES: Final = ReadKind("namespaces", "Namespace", CORE, is_namespaced=False)
EVENTS: Final = ReadKind("events", "Event", CORE)
PODS: Final = ReadKind("pods", "Pod", CORE)
WORKLOADS: Final = ReadKind("workloads", "Workload", COMPUTE)
DEPLOYMENTS: Final = ReadKind("workloaddeployments", "WorkloadDeployment", COMPUTE)
INSTANCES: Final = ReadKind("instances", "Instance", COMPUTE)
CLAIMS: Final = ReadKind("resourceclaims", "ResourceClaim", QUOTA)
BUCKETS: Final = ReadKind("allowancebuckets", "AllowanceBucket", QUOTA)
POLICIES: Final = ReadKind("propagationpolicies", "PropagationPolicy", POLICY)
BINDINGS: Final = ReadKind("resourcebindings", "ResourceBinding", WORK)
CLUSTERS: Final = ReadKind("clusters", "Cluster", CLUSTER, is_namespaced=False)
NETWORK_BINDINGS: Final = ReadKind("networkbindings", "NetworkBinding", NETWORKING)
NETWORK_CONTEXTS: Final = ReadKind("networkcontexts", "NetworkContext", NETWORKING)
SUBNET_CLAIMS: Final = ReadKind("subnetclaims", "SubnetClaim", NETWORKING)
SUBNETS: Final = ReadKind("subnets", "Subnet", NETWORKING)
LOCATIONS: Final = ReadKind("locations", "Location", NETWORKING)

NETWORK_KINDS: Final = (NETWORK_BINDINGS, NETWORK_CONTEXTS, SUBNET_CLAIMS, SUBNETS)

KINDS: Final[Mapping[Role, tuple[ReadKind, ...]]] = MappingProxyType(
    {
        Role.PROJECT: (
            NAMESPACES,
            WORKLOADS,
            DEPLOYMENTS,
            INSTANCES,
            CLAIMS,
            BUCKETS,
            EVENTS,
        ),
        Role.HUB: (NAMESPACES, DEPLOYMENTS, INSTANCES, POLICIES, BINDINGS, CLUSTERS, EVENTS),
        Role.CELL: (DEPLOYMENTS, INSTANCES, *NETWORK_KINDS, LOCATIONS, PODS, EVENTS),
    }
)


def proxy_prefix(cluster: str) -> str:
    """Where the hub passes requests on to the API server of a push member."""
    return f"{CLUSTERS.path(name=cluster)}/proxy"
