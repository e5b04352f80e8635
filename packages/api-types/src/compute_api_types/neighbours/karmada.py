"""Karmada's kinds on the hub: the policy we write, the Cluster we read (`docs/spec/neighbours.md`
1).

The server fills in more of a policy than we state; only what is modelled here is ours to compare
and write (`docs/spec/management.md` 5). ResourceBindings only have to be gone: `meta.PartialObject`
reads them.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from compute_api_types.labels import TOPOLOGY_CITY_CODE
from compute_api_types.meta import API_VERSION, ObjectMeta, Resource
from compute_api_types.model import Model
from compute_api_types.neighbours.foreign import ForeignStatus
from compute_api_types.scalars import PlainList, ReadOnlyMap

RESOURCE_BINDING = Resource("work.karmada.io", "v1alpha2", "ResourceBinding", "resourcebindings")


class LabelSelector(Model):
    """Selects by labels."""

    match_labels: ReadOnlyMap[str] | None = None


class ResourceSelector(Model):
    """Which hub objects a policy takes."""

    api_version: str
    kind: str
    label_selector: LabelSelector | None = None


class ClusterAffinity(Model):
    """Which Clusters a policy delivers to."""

    label_selector: LabelSelector | None = None


class ClusterToleration(Model):
    """A taint of Clusters that does not keep a policy from delivering, with any effect."""

    key: str
    operator: str = "Exists"


# Karmada taints a Cluster that it cannot reach with one of these. A toleration without effect and
# without seconds lets new deployments be scheduled there, and makes an eviction for it impossible.
TOLERATED: Final = (
    ClusterToleration(key="cluster.karmada.io/not-ready"),
    ClusterToleration(key="cluster.karmada.io/unreachable"),
)


class PolicyPlacement(Model):
    """Where a policy delivers."""

    cluster_affinity: ClusterAffinity | None = None
    cluster_tolerations: PlainList[ClusterToleration] | None = None


class PropagationPolicySpec(Model):
    """The fields of a policy that are ours."""

    resource_selectors: PlainList[ResourceSelector]
    placement: PolicyPlacement | None = None
    conflict_resolution: str | None = None

    @classmethod
    def for_city(cls, city_code: str) -> PropagationPolicySpec:
        """The one form of policy we write: deployments of a city to the Clusters of that city."""
        selector = LabelSelector(match_labels={TOPOLOGY_CITY_CODE: city_code})
        taken = ResourceSelector(
            api_version=API_VERSION, kind="WorkloadDeployment", label_selector=selector
        )
        return cls(
            resource_selectors=(taken,),
            placement=PolicyPlacement(
                cluster_affinity=ClusterAffinity(label_selector=selector),
                cluster_tolerations=TOLERATED,
            ),
            # A rebuilt hub takes its own copies over again.
            conflict_resolution="Overwrite",
        )


class PropagationPolicy(Model):
    """Delivers the deployments of one city in one namespace."""

    api_version: Literal["policy.karmada.io/v1alpha1"] = "policy.karmada.io/v1alpha1"
    kind: Literal["PropagationPolicy"] = "PropagationPolicy"
    metadata: ObjectMeta
    spec: PropagationPolicySpec

    RESOURCE: ClassVar = Resource(
        "policy.karmada.io", "v1alpha1", "PropagationPolicy", "propagationpolicies"
    )


class Cluster(Model):
    """A member of the hub, so a cell; its routing label names the city it serves."""

    api_version: Literal["cluster.karmada.io/v1alpha1"] = "cluster.karmada.io/v1alpha1"
    kind: Literal["Cluster"] = "Cluster"
    metadata: ObjectMeta
    status: ForeignStatus | None = None

    RESOURCE: ClassVar = Resource(
        "cluster.karmada.io", "v1alpha1", "Cluster", "clusters", namespaced=False
    )

    @property
    def city_code(self) -> str | None:
        """The city it serves, or None for one without the label."""
        return self.metadata.label(TOPOLOGY_CITY_CODE)
