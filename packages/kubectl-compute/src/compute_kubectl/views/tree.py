"""`tree`: the objects that stand for one Workload on all planes, each below its cause. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from compute_api_types import conditions, labels, names
from compute_kubectl.explain.chain import Chain, build_chains
from compute_kubectl.explain.diagnosis import ObjectName
from compute_kubectl.explain.explain import Subject
from compute_kubectl.explain.network import network_bindings_of
from compute_kubectl.snapshot.objects import SeenBinding, SeenInstance, SeenObject
from compute_kubectl.snapshot.planes import Snapshot

SCHEDULED = "Scheduled"
GRANTED = "Granted"


@dataclass(frozen=True, slots=True)
class Node:
    """An object with its state; `status` is empty where it reports none."""

    object: ObjectName
    age: timedelta | None = None
    condition_type: str = conditions.READY
    status: str = ""
    reason: str = ""
    children: tuple[Node, ...] = ()

    @property
    def is_bad(self) -> bool:
        return self.status not in {"", "True"}


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of one Workload; `root` is None where the Workload could not be read."""

    namespace: str
    name: str
    at: datetime
    root: Node | None


def derive_tree(snapshot: Snapshot, now: datetime, subject: Subject) -> Tree:
    """Workload → deployments → hub copies → bindings → cell deployments → Instances → the rest."""
    workload = next(
        (one for one in snapshot.project.workloads if one.meta.name == subject.name), None
    )
    uid = workload.meta.uid if workload else subject.uid
    if not uid:
        return Tree(snapshot.namespace, subject.name, now, None)
    builder = _Builder(snapshot, now)
    children = builder.cities(build_chains(snapshot, workload, uid))
    plane = snapshot.project.facts.name
    if workload is None:
        name = ObjectName(plane, "Workload", snapshot.namespace, subject.name)
        root = Node(name, status="Unknown", reason="not visible", children=children)
    else:
        root = builder.node(plane, workload, "Workload", children=children)
    return Tree(snapshot.namespace, subject.name, now, root)


def keep_bad(node: Node) -> Node | None:
    """The tree without branches in which everything is well."""
    kept = tuple(one for one in map(keep_bad, node.children) if one is not None)
    return replace(node, children=kept) if kept or node.is_bad else None


def has_bad(node: Node) -> bool:
    return node.is_bad or any(has_bad(one) for one in node.children)


class _Builder:
    """Makes nodes of one snapshot at one moment."""

    def __init__(self, snapshot: Snapshot, now: datetime) -> None:
        self._snapshot = snapshot
        self._now = now

    def node(
        self,
        plane: str,
        one: SeenObject,
        kind: str,
        *,
        condition_type: str = conditions.READY,
        children: Iterable[Node] = (),
    ) -> Node:
        condition = one.condition(condition_type)
        created = one.meta.created
        reason = condition.reason if condition else ""
        if one.meta.is_terminating:
            reason = "Terminating"
        return Node(
            ObjectName.of(plane, one.meta, kind),
            max(self._now - created, timedelta()) if created else None,
            condition_type,
            "False" if one.meta.is_terminating else condition.status if condition else "",
            reason,
            tuple(children),
        )

    def cities(self, chains: Iterable[Chain]) -> tuple[Node, ...]:
        grouped: dict[tuple[str, str], list[Chain]] = {}
        for chain in chains:
            grouped.setdefault((chain.placement, chain.city), []).append(chain)
        return tuple(self._city(group) for group in grouped.values())

    def _city(self, group: list[Chain]) -> Node:
        first = group[0]
        below = self._hub(group)
        if first.deployment is not None:
            plane = self._snapshot.project.facts.name
            if not first.hub_deployment and not any(one.cell_deployment for one in group):
                below = self._instances(first, plane, first.project_instances)
            return self.node(plane, first.deployment, "WorkloadDeployment", children=below)
        if below:
            return below[0]
        name = f"placement {first.placement} in {first.city}"
        object_name = ObjectName("", "WorkloadDeployment", self._snapshot.namespace, name)
        return Node(object_name, status="Unknown", reason="not seen")

    def _hub(self, group: list[Chain]) -> tuple[Node, ...]:
        first = group[0]
        cells = tuple(node for chain in group for node in self._cell(chain))
        if first.hub_deployment is None:
            return cells
        plane = self._snapshot.hub.facts.name
        if first.binding is not None:
            cells = (self._binding(plane, first.binding, cells),)
        return (self.node(plane, first.hub_deployment, "WorkloadDeployment", children=cells),)

    def _binding(self, plane: str, binding: SeenBinding, cells: tuple[Node, ...]) -> Node:
        return self.node(
            plane, binding, "ResourceBinding", condition_type=SCHEDULED, children=cells
        )

    def _cell(self, chain: Chain) -> tuple[Node, ...]:
        plane, _, instances = chain.instances
        below = self._instances(chain, plane, instances)
        if chain.cell_deployment is None:
            return below
        name = chain.cell_name
        networks = [self.node(name, one, "NetworkBinding") for one in network_bindings_of(chain)]
        below = (*networks, *below)
        return (self.node(name, chain.cell_deployment, "WorkloadDeployment", children=below),)

    def _instances(
        self, chain: Chain, plane: str, instances: Iterable[SeenInstance]
    ) -> tuple[Node, ...]:
        def ordinal(one: SeenInstance) -> tuple[int, str]:
            parsed = names.parse_instance_name(one.meta.name)
            return (parsed[1] if parsed else 0, one.meta.name)

        return tuple(
            self.node(plane, one, "Instance", children=self._needs(chain, plane, one))
            for one in sorted(instances, key=ordinal)
        )

    def _needs(self, chain: Chain, plane: str, instance: SeenInstance) -> Iterable[Node]:
        for gate in instance.gates:
            name = ObjectName(plane, "Gate", instance.meta.namespace, gate)
            yield Node(name, condition_type="", status="False", reason="closed")
        project = self._snapshot.project
        for claim in project.claims:
            cell = claim.meta.labels.get(labels.SOURCE_CLUSTER, "")
            if claim.instance == instance.meta.name and cell in {"", chain.cell_name}:
                yield self.node(project.facts.name, claim, "ResourceClaim", condition_type=GRANTED)
        for pod in chain.cell.pods:
            if pod.instance == instance.meta.name:
                yield self.node(chain.cell_name, pod, "Pod")
