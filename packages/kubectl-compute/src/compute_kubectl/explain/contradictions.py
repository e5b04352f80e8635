"""Contradictions: two planes that show different things about the same object.

They are listed whatever the verdict is. A plane that was not read contradicts nothing: each check
needs both listings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from compute_api_types import conditions, labels, names
from compute_kubectl.explain.chain import Chain
from compute_kubectl.explain.diagnosis import Contradiction, Evidence, ObjectName
from compute_kubectl.explain.stage_result import seen
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenCluster, SeenInstance, SeenObject
from compute_kubectl.snapshot.planes import Snapshot

_INSTANCE = "Instance"


def find_contradictions(snapshot: Snapshot, chains: Sequence[Chain]) -> tuple[Contradiction, ...]:
    """Every contradiction about one Workload, in the order of its cities."""
    found: list[Contradiction] = []
    for chain in chains:
        found += _ready_differs(chain)
        found += _unreachable_but_ready(chain)
        found += _copies_without_instance(chain)
        found += _projections_without_copy(chain)
        found += _claims_without_slot(chain)
        found += _deployment_without_hub_copy(chain)
    found += _shared_city_codes(chains)
    found += _other_namespaces(snapshot)
    return tuple(dict.fromkeys(found))


def _since(one: SeenObject, condition_type: str = conditions.READY) -> datetime | None:
    condition = one.condition(condition_type)
    return condition.since if condition else one.meta.created


def _by_name(instances: Sequence[SeenInstance]) -> dict[str, SeenInstance]:
    return {one.meta.name: one for one in instances}


def _ready_differs(chain: Chain) -> Iterator[Contradiction]:
    """Ready in the project, not on the cell."""
    if chain.cell.instances.access is not Access.READ:
        return
    cell = _by_name(chain.cell_instances)
    plane = chain.snapshot.project.facts.name
    for shown in chain.project_instances:
        real = cell.get(shown.meta.name)
        if real is None or not shown.is_true(conditions.READY) or real.is_true(conditions.READY):
            continue
        ready = real.condition(conditions.READY)
        value = f"{ready.status} {ready.reason}" if ready else "absent"
        yield Contradiction(
            f"Instance {shown.meta.name}: project shows Ready, {chain.cell_name} does not",
            seen(plane, shown, conditions.READY, "True", _INSTANCE),
            seen(chain.cell_name, real, conditions.READY, value, _INSTANCE),
            _since(shown),
            _since(real),
        )


def _unreachable_but_ready(chain: Chain) -> Iterator[Contradiction]:
    """The cell cannot be reached while the project still shows its Instances as Ready."""
    ready = [one for one in chain.project_instances if one.is_true(conditions.READY)]
    if not ready:
        return
    plane = chain.snapshot.project.facts.name
    first = seen(plane, ready[0], conditions.READY, "True", _INSTANCE)
    cluster = chain.cluster
    if cluster is not None and not cluster.is_true(conditions.READY):
        since = _since(cluster)
        yield Contradiction(
            f"project shows {_count(ready)} Ready, cell {chain.cell_name} is unreachable "
            "for Karmada",
            first,
            _cluster_ready(chain, cluster),
            _since(ready[0]),
            since,
        )
    elif chain.cell.facts.access is Access.UNREACHABLE:
        cell = ObjectName(chain.cell_name, "Cluster", "", chain.cell_name)
        yield Contradiction(
            f"project shows {_count(ready)} Ready, the API of cell {chain.cell_name} "
            "does not answer",
            first,
            Evidence(cell, "API", "unreachable"),
            _since(ready[0]),
            chain.cell.facts.at,
        )


def _count(instances: Sequence[SeenInstance]) -> str:
    return "1 Instance" if len(instances) == 1 else f"{len(instances)} Instances"


def _cluster_ready(chain: Chain, cluster: SeenCluster) -> Evidence:
    ready = cluster.condition(conditions.READY)
    value = f"{ready.status} {ready.reason}" if ready else "absent"
    return seen(chain.snapshot.hub.facts.name, cluster, conditions.READY, value, "Cluster")


def _copies_without_instance(chain: Chain) -> Iterator[Contradiction]:
    """A hub copy of an Instance that the cell does not have."""
    if not chain.cell.instances.proves_absence:
        return
    cell = _by_name(chain.cell_instances)
    hub = chain.snapshot.hub.facts.name
    for copy in chain.hub_instances:
        if copy.meta.name not in cell:
            yield Contradiction(
                f"hub copy of Instance {copy.meta.name} without an Instance on {chain.cell_name}",
                seen(hub, copy, "metadata.uid", copy.meta.uid, _INSTANCE),
                seen(chain.cell_name, copy, "on the cell", "absent", _INSTANCE),
                copy.meta.created,
                chain.cell.instances.at,
            )


def _projections_without_copy(chain: Chain) -> Iterator[Contradiction]:
    """A projection without its hub copy."""
    hub = chain.snapshot.hub
    if not hub.instances.proves_absence or chain.is_single_cluster:
        return
    copies = _by_name(chain.hub_instances)
    plane = chain.snapshot.project.facts.name
    for shown in chain.project_instances:
        if shown.meta.name not in copies:
            yield Contradiction(
                f"Instance {shown.meta.name} in the project without a hub copy",
                seen(plane, shown, "metadata.uid", shown.meta.uid, _INSTANCE),
                seen(hub.facts.name, shown, "on the hub", "absent", _INSTANCE),
                shown.meta.created,
                hub.instances.at,
            )


def _claims_without_slot(chain: Chain) -> Iterator[Contradiction]:
    """A quota claim of a slot that neither exists nor is wanted."""
    plane, listing, instances = chain.instances
    if not listing.proves_absence or chain.deployment is None:
        return
    present = {one.meta.name for one in instances}
    name = chain.deployment.meta.name
    project = chain.snapshot.project.facts.name
    for claim in chain.snapshot.project.claims:
        ordinal = names.parse_ordinal(name, claim.instance)
        cell = claim.meta.labels.get(labels.SOURCE_CLUSTER, "")
        if ordinal is None or cell not in {"", chain.cell_name}:
            continue
        if claim.instance not in present and ordinal >= chain.desired:
            yield Contradiction(
                f"claim {claim.meta.name} holds quota for a slot that does not exist",
                seen(project, claim, "metadata.uid", claim.meta.uid, "ResourceClaim"),
                seen(plane, claim, claim.instance, "absent", _INSTANCE),
                claim.meta.created,
                listing.at,
            )


def _deployment_without_hub_copy(chain: Chain) -> Iterator[Contradiction]:
    """A deployment on a cell without its hub copy."""
    hub = chain.snapshot.hub
    cell = chain.cell_deployment
    if cell is None or not hub.deployments.proves_absence or chain.hub_deployment is not None:
        return
    yield Contradiction(
        f"WorkloadDeployment {cell.meta.name} on {chain.cell_name}, its hub copy is gone",
        seen(chain.cell_name, cell, "metadata.uid", cell.meta.uid),
        seen(hub.facts.name, cell, "on the hub", "absent"),
        cell.meta.created,
        hub.deployments.at,
    )


def _shared_city_codes(chains: Sequence[Chain]) -> Iterator[Contradiction]:
    """Two Clusters with one city code: each runs every replica."""
    for chain in chains:
        if len(chain.clusters) < 2:
            continue
        first, second = chain.clusters[:2]
        hub = chain.snapshot.hub.facts.name
        names_of = ", ".join(one.meta.name for one in chain.clusters)
        yield Contradiction(
            f"AmbiguousCity: more than one Cluster carries the city code {chain.city}: {names_of}",
            seen(hub, first, labels.TOPOLOGY_CITY_CODE, first.city, "Cluster"),
            seen(hub, second, labels.TOPOLOGY_CITY_CODE, second.city, "Cluster"),
            first.meta.created,
            second.meta.created,
        )


def _other_namespaces(snapshot: Snapshot) -> Iterator[Contradiction]:
    """Hub copies of this namespace's name in a hub namespace of another UID: the namespace was
    created anew, and what belonged to the former one is left over.
    """
    live = names.derive_hub_namespace(snapshot.namespace_uid) if snapshot.namespace_uid else ""
    hub = snapshot.hub
    current = next((one for one in hub.namespaces if one.meta.name == live), None)
    if not live or current is None:
        return
    project = current.meta.labels.get(labels.UPSTREAM_CLUSTER_NAME, "")
    for one in hub.namespaces:
        same = (
            one.meta.labels.get(labels.UPSTREAM_CLUSTER_NAME) == project
            and one.meta.labels.get(labels.UPSTREAM_NAMESPACE) == snapshot.namespace
        )
        if same and one.meta.name != live and project:
            yield Contradiction(
                f"hub namespace {one.meta.name} belongs to a former namespace "
                f"{snapshot.namespace!r}",
                seen(hub.facts.name, one, "metadata.name", one.meta.name, "Namespace"),
                seen(hub.facts.name, current, "metadata.name", live, "Namespace"),
                one.meta.created,
                current.meta.created,
            )
