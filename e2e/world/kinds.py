"""API addresses (group, version, plural) of the kinds that scenarios use.

The operators' own tables of kinds are not imported: a wrong address there must fail a scenario.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Kind:
    """The API address of a kind."""

    group: str
    version: str
    plural: str
    name: str
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of an object or a collection; each name is quoted as one segment."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [self.plural, name, subresource]
        if self.is_namespaced and namespace:
            parts = ["namespaces", namespace, *parts]
        return "/".join([root, *(quote(part, safe="") for part in parts if part)])


_COMPUTE: Final = "compute.datumapis.com"
_NETWORKING: Final = "networking.datumapis.com"
_QUOTA: Final = "quota.miloapis.com"
_RBAC: Final = "rbac.authorization.k8s.io"

WORKLOAD: Final = Kind(_COMPUTE, "v1alpha", "workloads", "Workload")
DEPLOYMENT: Final = Kind(_COMPUTE, "v1alpha", "workloaddeployments", "WorkloadDeployment")
INSTANCE: Final = Kind(_COMPUTE, "v1alpha", "instances", "Instance")
AUTOSCALER: Final = Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace", is_namespaced=False)
EVENT: Final = Kind("", "v1", "events", "Event")
POD: Final = Kind("", "v1", "pods", "Pod")
SECRET: Final = Kind("", "v1", "secrets", "Secret")
CONFIG_MAP: Final = Kind("", "v1", "configmaps", "ConfigMap")
RESOURCE_QUOTA: Final = Kind("", "v1", "resourcequotas", "ResourceQuota")
NODE: Final = Kind("", "v1", "nodes", "Node", is_namespaced=False)
CLUSTER_ROLE: Final = Kind(_RBAC, "v1", "clusterroles", "ClusterRole", is_namespaced=False)
CLUSTER_ROLE_BINDING: Final = Kind(
    _RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", is_namespaced=False
)
ADMISSION_POLICY: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    is_namespaced=False,
)
ADMISSION_POLICY_BINDING: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    is_namespaced=False,
)
RESOURCE_BINDING: Final = Kind("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding")
WORK: Final = Kind("work.karmada.io", "v1alpha1", "works", "Work")
LEASE: Final = Kind("coordination.k8s.io", "v1", "leases", "Lease")
DEFINITION: Final = Kind(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    is_namespaced=False,
)
POLICY: Final = Kind("policy.karmada.io", "v1alpha1", "propagationpolicies", "PropagationPolicy")
CLUSTER_POLICY: Final = Kind(
    "policy.karmada.io",
    "v1alpha1",
    "clusterpropagationpolicies",
    "ClusterPropagationPolicy",
    is_namespaced=False,
)
CLUSTER: Final = Kind("cluster.karmada.io", "v1alpha1", "clusters", "Cluster", is_namespaced=False)
PROJECT: Final = Kind(
    "resourcemanager.miloapis.com", "v1alpha1", "projects", "Project", is_namespaced=False
)
SUSPENSION: Final = Kind(
    "resourcemanager.miloapis.com",
    "v1alpha1",
    "projectsuspensions",
    "ProjectSuspension",
    is_namespaced=False,
)
CLAIM: Final = Kind(_QUOTA, "v1alpha1", "resourceclaims", "ResourceClaim")
GRANT: Final = Kind(_QUOTA, "v1alpha1", "resourcegrants", "ResourceGrant")
BUCKET: Final = Kind(_QUOTA, "v1alpha1", "allowancebuckets", "AllowanceBucket")
NETWORK: Final = Kind(_NETWORKING, "v1alpha", "networks", "Network")
LOCATION: Final = Kind(_NETWORKING, "v1alpha", "locations", "Location", is_namespaced=False)
BINDING: Final = Kind(_NETWORKING, "v1alpha", "networkbindings", "NetworkBinding")
SUBNET_CLAIM: Final = Kind(_NETWORKING, "v1alpha", "subnetclaims", "SubnetClaim")

KINDS: Final = (
    WORKLOAD,
    DEPLOYMENT,
    INSTANCE,
    AUTOSCALER,
    NAMESPACE,
    EVENT,
    POD,
    SECRET,
    CONFIG_MAP,
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    RESOURCE_BINDING,
    WORK,
    RESOURCE_QUOTA,
    NODE,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    LEASE,
    DEFINITION,
    POLICY,
    CLUSTER_POLICY,
    CLUSTER,
    PROJECT,
    SUSPENSION,
    CLAIM,
    GRANT,
    BUCKET,
    NETWORK,
    LOCATION,
    BINDING,
    SUBNET_CLAIM,
)


def kind_of(api_version: str, name: str) -> Kind:
    """The kind of a document. An unknown kind is a mistake in the scenario and raises."""
    for kind in KINDS:
        if (kind.api_version, kind.name) == (api_version, name):
            return kind
    raise LookupError(f"addressing {name!r}: {api_version!r} is not in the table of kinds")
