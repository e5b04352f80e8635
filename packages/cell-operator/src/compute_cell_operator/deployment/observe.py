"""Cache reads of one WorkloadDeployment, its Instances and its network, at one moment.

Objects may have bypassed admission, so a member of a wrong type counts as absent. A cache that is
incomplete gives `Unreadable`, never an empty list: an empty list looks like a mass deletion. Only
Instances of the deployment or in its slots are decoded, so that a reconcile does not grow with its
neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from compute_api_types import labels, names
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.autoscaling.demand import derive_desired
from compute_cell_operator.autoscaling.memory import AutoscalingMemory
from compute_cell_operator.autoscaling.observe import (
    NOT_SCALED,
    ObservedScaling,
    count_occupied,
    observe_scaling,
)
from compute_cell_operator.conditions import ReportedCondition, StoredStatus, read_conditions
from compute_cell_operator.deployment.instance_digest import (
    read_digest_conditions,
    read_reported_hash,
    read_suspension,
)
from compute_cell_operator.deployment.revisions import Revisions
from compute_cell_operator.deployment.slots import SlotInstance, Slots, derive_slots
from compute_cell_operator.deployment.template import RenderedTemplate, derive_revision, render
from compute_cell_operator.indexes import OWNER
from compute_cell_operator.instance_facts import read_gates
from compute_cell_operator.network.observe import CITY as LOCATIONS_BY_CITY
from compute_cell_operator.network.observe import ObservedNetwork, observe_network
from compute_cell_operator.network.state import NetworkingState
from compute_cell_operator.planes import DEPLOYMENT, INSTANCE, LOCATION, NAMESPACE
from compute_cell_operator.referenced_data.judgement import DataMode, DataVerdict
from compute_cell_operator.referenced_data.observe import observe_data
from compute_cell_operator.suspension import read_suspended
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import (
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Metadata, Snapshot, Unreadable

SLOT_OF: Final = "slot-of"
"""Index of Instances: `namespace/name` of the deployment that their name is a slot of."""


@dataclass(frozen=True, slots=True)
class DeploymentSpec:
    """The spec of a WorkloadDeployment, but for its template."""

    city_code: str = ""
    placement_name: str = ""
    workload_name: str = ""
    workload_uid: str = ""
    min_replicas: int = 0
    management_policy: str = ""


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    """The stored status of a WorkloadDeployment."""

    stored: StoredStatus
    observed_generation: int = 0
    desired_replicas: int = 0
    updated_replicas: int = 0
    location: str = ""
    is_suspended: bool = False

    @property
    def conditions(self) -> tuple[ReportedCondition, ...]:
        return self.stored.conditions


@dataclass(frozen=True, slots=True)
class ObservedLocations:
    """Locations of the deployment's city that are not being deleted, sorted by name."""

    matching: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObservedDeployment:
    """One deployment at one moment."""

    key: ObjectKey
    metadata: Metadata
    spec: DeploymentSpec
    status: DeploymentStatus
    template: RenderedTemplate
    template_hash: str
    slots: Slots
    networking: NetworkingState
    locations: ObservedLocations | Unreadable  # empty while networking is off
    network: ObservedNetwork | Unreadable  # empty while networking is off
    is_namespace_deleting: bool = False
    cell_city: str = ""  # "" where it is not configured
    owned: tuple[SlotInstance, ...] = ()  # `slots.owned`, derived once
    scaling: ObservedScaling = NOT_SCALED
    data: DataVerdict | None = None  # of what the template names; None where nothing is awaited

    @property
    def is_deleting(self) -> bool:
        return self.metadata.is_deleting or self.is_namespace_deleting

    @property
    def is_suspended(self) -> bool:
        """Its slots stay as they are: none is filled, replaced or opened (suspension.md 4)."""
        return labels.is_suspended(self.metadata.annotations)

    @property
    def desired(self) -> int:
        """How many Instances are to exist (cell.md 3, autoscaling.md 1)."""
        if self.is_deleting:
            return 0
        if not self.scaling.is_active:
            return max(0, self.spec.min_replicas)
        return derive_desired(self.scaling.demand, self.occupied)

    @property
    def occupied(self) -> int:
        """The highest slot with an Instance, and one."""
        return count_occupied(self.key.name, (one.name for one in self.owned))


@dataclass(frozen=True, slots=True)
class DeploymentContext:
    """Inputs that are in no cache: the cell's configuration, the networking state, and template
    hashes derived before.
    """

    networking: NetworkingState
    cell_city: str = ""
    revisions: Revisions = field(default_factory=Revisions)
    data: DataMode = DataMode.OFF
    autoscaling: AutoscalingMemory | None = None  # None: off in this cell


def observe(
    key: ObjectKey, caches: Caches, context: DeploymentContext
) -> ObservedDeployment | None:
    """None where the deployment is absent, or a cache is incomplete."""
    deployment = caches.lister(key.plane, DEPLOYMENT).get(key.namespace, key.name)
    if not isinstance(deployment, Snapshot):
        return None
    snapshots = _observe_instances(key, deployment, caches)
    if snapshots is None:
        return None
    body = deployment.read()  # shared with other readers: must not be changed
    document = member_object(body, "spec")
    spec = read_spec(document)
    template = member_object(document, "template")
    rendered = render(template)
    revision = context.revisions.read(template)
    instances = (_read_instance(one, rendered, revision.compare) for one in snapshots)
    slots = derive_slots(key.name, deployment.metadata.uid, instances)
    is_on = context.networking is NetworkingState.ON
    return ObservedDeployment(
        key=key,
        metadata=deployment.metadata,
        spec=spec,
        status=read_status(member_object(body, "status")),
        template=rendered,
        template_hash=revision.hash,
        slots=slots,
        networking=context.networking,
        locations=_observe_locations(key, spec, caches) if is_on else ObservedLocations(()),
        network=observe_network(key, deployment.metadata.uid, template, caches)
        if is_on
        else ObservedNetwork(()),
        is_namespace_deleting=_is_namespace_deleting(key, caches),
        cell_city=context.cell_city,
        owned=slots.owned,
        scaling=observe_scaling(deployment, document, caches, context.autoscaling),
        data=observe_data(deployment.metadata, template, key.plane, caches, context.data),
    )


def read_spec(spec: JsonObject) -> DeploymentSpec:
    workload = member_object(spec, "workloadRef")
    scale = member_object(spec, "scaleSettings")
    return DeploymentSpec(
        city_code=member_text(spec, "cityCode"),
        placement_name=member_text(spec, "placementName"),
        workload_name=member_text(workload, "name"),
        workload_uid=member_text(workload, "uid"),
        min_replicas=member_int(scale, "minReplicas"),
        management_policy=member_text(scale, "instanceManagementPolicy"),
    )


def read_status(status: JsonObject) -> DeploymentStatus:
    return DeploymentStatus(
        stored=StoredStatus(status, read_conditions(status)),
        observed_generation=member_int(status, "observedGeneration"),
        desired_replicas=member_int(status, "desiredReplicas"),
        updated_replicas=member_int(status, "updatedReplicas"),
        location=member_text(member_object(status, "location"), "name"),
        is_suspended=read_suspended(status),
    )


def _observe_instances(
    key: ObjectKey, deployment: Snapshot, caches: Caches
) -> Iterable[Snapshot] | None:
    """Instances that the deployment controls and those in its slots, each once."""
    lister = caches.lister(key.plane, INSTANCE)
    owned = lister.by_index(OWNER, deployment.metadata.uid)
    placed = lister.by_index(SLOT_OF, f"{key.namespace}/{key.name}")
    if isinstance(owned, Unreadable) or isinstance(placed, Unreadable):
        return None
    # An owner reference that was copied into another namespace makes no Instance there ours.
    nearby = (one for one in (*owned, *placed) if one.key.namespace == key.namespace)
    return {one.key: one for one in nearby}.values()


def _read_instance(
    snapshot: Snapshot, rendered: RenderedTemplate, compare: Callable[[str], HashVerdict]
) -> SlotInstance:
    body = snapshot.read()
    spec, status = member_object(body, "spec"), member_object(body, "status")
    revision = derive_revision(snapshot.metadata, spec, rendered, compare)
    return SlotInstance(
        key=snapshot.key,
        metadata=snapshot.metadata,
        revision=revision.verdict,
        reported_revision=_derive_reported(spec, status, revision.verdict, compare),
        gates=read_gates(spec),
        location=member_text(member_object(spec, "location"), "name"),
        interfaces=len(member_list(spec, "networkInterfaces")),
        conditions=read_digest_conditions(status),
        is_unmarked=revision.is_unmarked,
        suspension=read_suspension(status),
    )


def _derive_reported(
    spec: JsonObject,
    status: JsonObject,
    own: HashVerdict,
    compare: Callable[[str], HashVerdict],
) -> HashVerdict | None:
    """A provider that reports the Instance's own hash runs the Instance's own template."""
    reported = read_reported_hash(status)
    if not reported:
        return None
    recorded = member_text(member_object(spec, "controller"), "templateHash")
    return own if reported == recorded else compare(reported)


def _observe_locations(
    key: ObjectKey, spec: DeploymentSpec, caches: Caches
) -> ObservedLocations | Unreadable:
    locations = caches.lister(key.plane, LOCATION).by_index(LOCATIONS_BY_CITY, spec.city_code)
    if isinstance(locations, Unreadable):
        return locations
    present = (one.metadata.name for one in locations if not one.metadata.is_deleting)
    return ObservedLocations(tuple(sorted(present)))


def _is_namespace_deleting(key: ObjectKey, caches: Caches) -> bool:
    """A Namespace that is not cached yet is no sign of deletion: caches fill in any order."""
    namespace = caches.lister(key.plane, NAMESPACE).get("", key.namespace)
    return isinstance(namespace, Snapshot) and namespace.metadata.is_deleting


def index_by_slot(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    parsed = names.parse_instance_name(metadata.name)
    return (f"{metadata.namespace}/{parsed[0]}",) if parsed is not None else ()
