"""One placement in one city, on one cell, joined over all planes by identity.

The join uses UIDs, placement and city, never a derived name: a deployment may have its hashed name,
and a namespace of the same name may have been created anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from compute_api_types import labels, names
from compute_kubectl.snapshot.access import Access, Listing
from compute_kubectl.snapshot.objects import (
    SeenBinding,
    SeenCluster,
    SeenDeployment,
    SeenInstance,
    SeenObject,
    SeenWorkload,
)
from compute_kubectl.snapshot.planes import CellPlane, Snapshot


@dataclass(frozen=True, slots=True)
class Chain:
    """The objects that stand for one placement in one city on every plane; None is "not listed"."""

    snapshot: Snapshot
    placement: str
    city: str
    workload: SeenWorkload | None = None
    is_wanted: bool = True
    deployment: SeenDeployment | None = None
    hub_namespace: str = ""
    hub_namespace_object: SeenObject | None = None
    hub_deployment: SeenDeployment | None = None
    binding: SeenBinding | None = None
    clusters: tuple[SeenCluster, ...] = ()
    cell_name: str = ""
    cell_deployment: SeenDeployment | None = None
    project_instances: tuple[SeenInstance, ...] = ()
    hub_instances: tuple[SeenInstance, ...] = ()
    cell_instances: tuple[SeenInstance, ...] = ()
    is_single_cluster: bool = field(default=False)

    @property
    def cell(self) -> CellPlane:
        return self.snapshot.cell(self.cell_name)

    @property
    def nearest_deployment(self) -> SeenDeployment | None:
        """The WorkloadDeployment nearest to what runs: of the cell, the hub, the project."""
        return self.cell_deployment or self.hub_deployment or self.deployment

    @property
    def deployment_name(self) -> str:
        found = self.deployment or self.hub_deployment or self.cell_deployment
        return found.meta.name if found else ""

    @property
    def instances(self) -> tuple[str, Listing[SeenInstance], tuple[SeenInstance, ...]]:
        """Plane, listing and Instances nearest to what runs that could be read."""
        cell = self.cell
        if cell.instances.access is Access.READ:
            return cell.name, cell.instances, self.cell_instances
        hub = self.snapshot.hub
        if hub.instances.access is Access.READ:
            return hub.facts.name, hub.instances, self.hub_instances
        project = self.snapshot.project
        return project.facts.name, project.instances, self.project_instances

    @property
    def desired(self) -> int:
        """How many Instances the newest visible spec asks for."""
        if self.deployment is not None:
            return self.deployment.desired
        nearest = self.nearest_deployment
        return nearest.desired if nearest else 0

    @property
    def cluster(self) -> SeenCluster | None:
        return next((one for one in self.clusters if one.meta.name == self.cell_name), None)


def build_chains(snapshot: Snapshot, workload: SeenWorkload | None, uid: str) -> tuple[Chain, ...]:
    """A chain for each placement, city and cell of a Workload, in the order of their names."""
    wanted: dict[tuple[str, str], None] = {}
    for one in workload.placements if workload else ():
        for code in one.cities:
            wanted[one.name, code] = None
    existing = {
        (one.placement, one.city)
        for listing in _deployment_listings(snapshot)
        for one in listing
        if one.workload_uid == uid
    }
    chains: list[Chain] = []
    for placement, city in sorted({*wanted, *existing}):
        is_wanted = workload is None or (placement, city) in wanted
        base = Chain(snapshot, placement, city, workload, is_wanted)
        chains += _with_cells(_with_hub(_with_project(base, uid), uid), uid)
    return tuple(chains)


def _deployment_listings(snapshot: Snapshot) -> Iterator[Listing[SeenDeployment]]:
    yield snapshot.project.deployments
    yield snapshot.hub.deployments
    for name in sorted(snapshot.cells):
        yield snapshot.cells[name].deployments


def _with_project(chain: Chain, uid: str) -> Chain:
    project = chain.snapshot.project
    identity = (uid, chain.placement, chain.city)
    deployment = _find(project.deployments, identity)
    instances = tuple(
        one for one in project.instances if deployment and _belongs(one, deployment.meta.name)
    )
    namespace_uid = chain.snapshot.namespace_uid
    namespace = names.derive_hub_namespace(namespace_uid) if namespace_uid else ""
    if not namespace and deployment:
        namespace = deployment.hub_namespace
    return replace(
        chain,
        deployment=deployment,
        project_instances=instances,
        hub_namespace=namespace,
        is_single_cluster=deployment is not None and _is_single_cluster(deployment, instances),
    )


def _is_single_cluster(deployment: SeenDeployment, instances: Iterable[SeenInstance]) -> bool:
    """Whether the cell operator acts on the project's own objects: nothing is copied anywhere."""
    if deployment.hub_namespace:
        return False
    written = deployment.meta.written_by(labels.DEPLOYMENT_MANAGER, status=True) is not None
    controlled = any(one.meta.controller_uid == deployment.meta.uid for one in instances)
    return written or controlled


def _with_hub(chain: Chain, uid: str) -> Chain:
    hub = chain.snapshot.hub
    identity = (uid, chain.placement, chain.city)
    copies = [one for one in hub.deployments if one.identity == identity]
    if chain.hub_namespace:
        copies = [one for one in copies if one.meta.namespace == chain.hub_namespace]
    copy = copies[0] if copies else None
    namespace = chain.hub_namespace or (copy.meta.namespace if copy else "")
    found = (one for one in hub.namespaces if one.meta.name == namespace)
    return replace(
        chain,
        hub_namespace=namespace,
        hub_namespace_object=next(found, None) if namespace else None,
        hub_deployment=copy,
        binding=_find_binding(hub.bindings, copy) if copy else None,
        clusters=tuple(one for one in hub.clusters if one.city == chain.city),
        hub_instances=tuple(
            one
            for one in hub.instances
            if copy and one.meta.namespace == namespace and _belongs(one, copy.meta.name)
        ),
    )


def _find_binding(bindings: Listing[SeenBinding], deployment: SeenDeployment) -> SeenBinding | None:
    for one in bindings:
        if (one.resource_kind, one.meta.namespace) != (
            "WorkloadDeployment",
            deployment.meta.namespace,
        ):
            continue
        if one.resource_uid in {"", deployment.meta.uid} and (
            one.resource_name == deployment.meta.name
        ):
            return one
    return None


def _with_cells(chain: Chain, uid: str) -> list[Chain]:
    if chain.is_single_cluster:
        return [chain]
    named = sorted(_cell_names(chain, uid))
    if not named:
        return [chain]
    return [_with_cell(chain, name, uid) for name in named]


def _cell_names(chain: Chain, uid: str) -> set[str]:
    """The cells that have the deployment; where none is known, those that serve the city."""
    identity = (uid, chain.placement, chain.city)
    found = set(chain.binding.clusters) if chain.binding else set[str]()
    found |= {
        name for name, cell in chain.snapshot.cells.items() if _find(cell.deployments, identity)
    }
    copies = (*chain.hub_instances, *chain.project_instances)
    found |= {one.cell for one in copies if one.cell}
    return found or {one.meta.name for one in chain.clusters}


def _with_cell(chain: Chain, name: str, uid: str) -> Chain:
    cell = chain.snapshot.cell(name)
    deployment = _find(cell.deployments, (uid, chain.placement, chain.city))
    known = deployment.meta.name if deployment else chain.deployment_name
    is_of_cell = {"", name}
    return replace(
        chain,
        cell_name=name,
        cell_deployment=deployment,
        cell_instances=tuple(
            one
            for one in cell.instances
            if _belongs(one, known)
            and (not chain.hub_namespace or one.meta.namespace == chain.hub_namespace)
        ),
        hub_instances=tuple(one for one in chain.hub_instances if one.cell in is_of_cell),
        project_instances=tuple(one for one in chain.project_instances if one.cell in is_of_cell),
    )


def _find(
    listing: Listing[SeenDeployment], identity: tuple[str, str, str]
) -> SeenDeployment | None:
    return next((one for one in listing if one.identity == identity), None)


def _belongs(instance: SeenInstance, deployment: str) -> bool:
    """By label, else by the form of the name: a label may have been edited away."""
    if instance.deployment_name:
        return instance.deployment_name == deployment
    return names.parse_ordinal(deployment, instance.meta.name) is not None
