"""Typed values of the objects that a diagnosis uses, of any writer and any release.

Fields that other releases add are not here, so that they cannot change an answer. `unreadable`
names what did not parse; such an object still counts as present.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from compute_api_types import labels


@dataclass(frozen=True, slots=True)
class FieldWrite:
    """One entry of managedFields: which manager wrote which part last, and when."""

    manager: str
    at: datetime | None
    subresource: str
    parts: tuple[str, ...]

    @property
    def is_status(self) -> bool:
        return self.subresource == "status" or self.parts == ("status",)


@dataclass(frozen=True, slots=True)
class Meta:
    """Identity, times, labels and annotations of an object."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    created: datetime | None = None
    deleted: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    finalizers: tuple[str, ...] = ()
    owner_uids: tuple[str, ...] = ()
    controller_uid: str = ""
    writes: tuple[FieldWrite, ...] = ()

    @property
    def is_terminating(self) -> bool:
        return self.deleted is not None

    @property
    def spec_changed(self) -> datetime | None:
        """When the spec was last written; the creation where no manager is recorded."""
        times = [one.at for one in self.writes if one.at and "spec" in one.parts]
        return max([*times, *([self.created] if self.created else [])], default=None)

    def written_by(self, manager: str, *, status: bool = False) -> datetime | None:
        times = [
            one.at
            for one in self.writes
            if one.at and one.manager == manager and one.is_status is status
        ]
        return max(times, default=None)


@dataclass(frozen=True, slots=True)
class SeenCondition:
    """A condition of any writer; `since` is None for a schema default."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None
    observed_generation: int | None = None

    @property
    def is_true(self) -> bool:
        return self.status == "True"


@dataclass(frozen=True, slots=True)
class SeenObject:
    """Any object by metadata and conditions."""

    meta: Meta
    conditions: tuple[SeenCondition, ...] = ()
    unreadable: str = ""

    def condition(self, condition_type: str) -> SeenCondition | None:
        return next((one for one in self.conditions if one.type == condition_type), None)

    def is_true(self, condition_type: str) -> bool:
        condition = self.condition(condition_type)
        return condition is not None and condition.is_true


@dataclass(frozen=True, slots=True)
class SeenPlacement:
    """A placement of a Workload: its cities and its scale."""

    name: str
    cities: tuple[str, ...]
    min_replicas: int
    is_autoscaled: bool = False


@dataclass(frozen=True, slots=True)
class SeenWorkload(SeenObject):
    """A Workload in a project."""

    placements: tuple[SeenPlacement, ...] = ()
    template_hash: str = ""
    observed_generation: int = 0
    placement_conditions: Mapping[str, tuple[SeenCondition, ...]] = field(
        default_factory=dict[str, tuple[SeenCondition, ...]]
    )
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of a status; all 0 before the first report."""

    replicas: int = 0
    desired: int = 0
    ready: int = 0
    current: int = 0
    updated: int = 0


@dataclass(frozen=True, slots=True)
class SeenDeployment(SeenObject):
    """A WorkloadDeployment on any plane."""

    workload_name: str = ""
    workload_uid: str = ""
    placement: str = ""
    city: str = ""
    min_replicas: int = 0
    is_autoscaled: bool = False
    template_hash: str = ""
    observed_generation: int = 0
    observed_template_generation: int | None = None
    observed_template_uid: str | None = None
    counters: Counters = field(default_factory=Counters)

    @property
    def identity(self) -> tuple[str, str, str]:
        """Workload UID, placement and city: the same on every plane, whatever the name is."""
        return self.workload_uid, self.placement, self.city

    @property
    def desired(self) -> int:
        """How many Instances it asks for; the number of an autoscaler is in the status alone, on
        every plane but its cell.
        """
        scaled = self.counters.desired if self.is_autoscaled else 0
        return max(scaled, self.min_replicas)

    @property
    def hub_namespace(self) -> str:
        return self.meta.annotations.get(labels.FEDERATION_NAMESPACE, "")

    @property
    def answers_its_generation(self) -> bool:
        return self.observed_generation >= self.meta.generation > 0


@dataclass(frozen=True, slots=True)
class SeenInstance(SeenObject):
    """An Instance on a cell, its copy on the hub, or its projection in a project."""

    gates: tuple[str, ...] = ()
    template_hash: str = ""
    observed_template_hash: str = ""
    instance_type: str = ""

    @property
    def deployment_name(self) -> str:
        return self.meta.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, "")

    @property
    def cell(self) -> str:
        return self.meta.labels.get(labels.CELL, "")

    @property
    def source_uid(self) -> str:
        """The UID of the cell's Instance: its own on the cell, noted on every copy."""
        return self.meta.annotations.get(labels.INSTANCE_UID, "")


@dataclass(frozen=True, slots=True)
class SeenPolicy(SeenObject):
    """A PropagationPolicy on the hub."""

    city: str = ""


@dataclass(frozen=True, slots=True)
class AppliedStatus:
    """One cluster in the aggregated status of a ResourceBinding."""

    cluster: str
    is_applied: bool
    message: str = ""
    observed_template_generation: int | None = None


@dataclass(frozen=True, slots=True)
class SeenBinding(SeenObject):
    """A ResourceBinding on the hub: where Karmada schedules one WorkloadDeployment."""

    resource_kind: str = ""
    resource_name: str = ""
    resource_uid: str = ""
    clusters: tuple[str, ...] = ()
    applied: tuple[AppliedStatus, ...] = ()
    scheduler_observed_generation: int = 0


@dataclass(frozen=True, slots=True)
class SeenCluster(SeenObject):
    """A member of the hub, so a cell."""

    city: str = ""
    sync_mode: str = ""


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of one resource type is asked for or allocated."""

    resource_type: str
    amount: int
    status: str = ""


@dataclass(frozen=True, slots=True)
class SeenClaim(SeenObject):
    """A ResourceClaim in a project."""

    instance: str = ""
    instance_uid: str = ""
    requests: tuple[Amount, ...] = ()
    allocations: tuple[Amount, ...] = ()
    project: str = ""


@dataclass(frozen=True, slots=True)
class SeenBucket(SeenObject):
    """An AllowanceBucket: limit and use of one resource type in a project."""

    resource_type: str = ""
    project: str = ""
    limit: int = 0
    allocated: int = 0
    available: int = 0


@dataclass(frozen=True, slots=True)
class SeenNetworkObject(SeenObject):
    """A NetworkBinding, NetworkContext, SubnetClaim or Subnet."""

    context: str = ""
    subnet: str = ""
    network: str = ""


@dataclass(frozen=True, slots=True)
class SeenLocation(SeenObject):
    """A Location: a place that serves a city."""

    city: str = ""


@dataclass(frozen=True, slots=True)
class SeenPod(SeenObject):
    """A Pod by labels and status; no spec is kept."""

    instance: str = ""
    phase: str = ""
    waiting: str = ""
    restarts: int = 0
    last_exit: int | None = None


@dataclass(frozen=True, slots=True)
class SeenEvent(SeenObject):
    """A core Event."""

    about_kind: str = ""
    about_name: str = ""
    about_uid: str = ""
    reason: str = ""
    message: str = ""
    is_warning: bool = False
    count: int = 1
    first: datetime | None = None
    last: datetime | None = None
    reporter: str = ""
