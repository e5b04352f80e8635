"""Instance: one thing that runs in one city (`docs/spec/api.md` 2).

Its spec is also what Workload and WorkloadDeployment carry as a template. A stored Instance may
lack `spec` and `status.controller`: both are optional here, and a reader must expect None.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field

from compute_api_types import reasons
from compute_api_types.conditions import (
    AVAILABLE,
    PROGRAMMED,
    QUOTA_GRANTED,
    READY,
    Condition,
    defaulted,
)
from compute_api_types.meta import (
    API_VERSION,
    GROUP,
    VERSION,
    ObjectMeta,
    Resource,
    TemplateMeta,
)
from compute_api_types.model import Model
from compute_api_types.scalars import FilledList, KeyedList, PlainList
from compute_api_types.v1alpha.network_interfaces import NetworkInterface
from compute_api_types.v1alpha.runtime import InstanceRuntime
from compute_api_types.v1alpha.volumes import Volume

WAITING: Final = "Waiting for controller"
"""The message of a condition that no controller has written yet (api.md 7)."""


class LocationReference(Model):
    """A Location of networking.datumapis.com."""

    name: str = Field(description="The Location.")
    namespace: str = Field(description="Empty: Locations are cluster-scoped.")


class SchedulingGate(Model):
    """Something an instance waits for before it may run."""

    name: str = Field(description="What it waits for.")


class InstanceController(Model):
    """What the cell keeps on an instance; users may not set it."""

    template_hash: str = Field(
        description="Opaque hash of the deployment's template that the instance was made from."
    )
    scheduling_gates: KeyedList[SchedulingGate] | None = Field(
        default=None, description="While any gate is present nothing runs."
    )


class InstanceSpec(Model):
    """What an instance is to be."""

    runtime: InstanceRuntime = Field(description="How it runs.")
    network_interfaces: FilledList[NetworkInterface] = Field(
        description="The networks it is attached to."
    )
    volumes: KeyedList[Volume] | None = Field(default=None, description="What can be attached.")
    location: LocationReference | None = Field(
        default=None, description="Where it runs; set by the cell."
    )
    controller: InstanceController | None = Field(
        default=None, description="What the cell keeps here; users may not set it."
    )


class InstanceTemplate(Model):
    """What instances are made from."""

    metadata: TemplateMeta | None = Field(
        default=None, description="Labels and annotations of the instances."
    )
    spec: InstanceSpec = Field(description="What the instances are to be.")


class InterfaceAssignments(Model):
    """The addresses of one interface."""

    network_ip: str | None = Field(
        default=None,
        validation_alias="networkIP",
        serialization_alias="networkIP",
        description="Its address in the network.",
    )
    external_ip: str | None = Field(
        default=None,
        validation_alias="externalIP",
        serialization_alias="externalIP",
        description="Its address outside.",
    )


class InterfaceStatus(Model):
    """One interface as it is."""

    assignments: InterfaceAssignments | None = Field(default=None, description="Its addresses.")


class InstanceControllerStatus(Model):
    """What the provider has realised."""

    observed_template_hash: str = Field(description="The template hash it realised.")
    suspended_observed: bool | None = Field(
        default=None,
        description="True once nothing of a suspended instance runs; absent where not reported.",
    )


class InstanceStatus(Model):
    """How an instance is doing."""

    conditions: PlainList[Condition] | None = Field(
        default=None, description="What is observed about it."
    )
    network_interfaces: PlainList[InterfaceStatus] | None = Field(
        default=None, description="Its interfaces, in the order of the spec."
    )
    controller: InstanceControllerStatus | None = Field(
        default=None, description="What the provider has realised; absent means nothing yet."
    )
    suspended: bool | None = Field(
        default=None,
        description="True while its project is suspended: a provider stops what runs and keeps the "
        "instance; absent means false.",
    )

    @classmethod
    def defaulted(cls) -> InstanceStatus:
        """The status of the schema, before the first write of a controller (api.md 7)."""
        return cls(
            conditions=(
                defaulted(PROGRAMMED, reasons.PENDING, WAITING),
                defaulted(AVAILABLE, reasons.PENDING, WAITING),
                defaulted(READY, reasons.PENDING, WAITING),
                defaulted(
                    QUOTA_GRANTED, reasons.PENDING_EVALUATION, "Waiting for quota evaluation"
                ),
            )
        )


class Instance(Model):
    """One thing that runs in one city, made from the template of a WorkloadDeployment."""

    api_version: Literal["compute.datumapis.com/v1alpha"] = API_VERSION
    kind: Literal["Instance"] = "Instance"
    metadata: ObjectMeta
    spec: InstanceSpec | None = Field(default=None, description="What it is to be.")
    status: InstanceStatus | None = Field(default=None, description="How it is doing.")

    RESOURCE: ClassVar = Resource(GROUP, VERSION, "Instance", "instances")

    @property
    def gates(self) -> tuple[str, ...]:
        """The names of the scheduling gates that still hold it, in list order."""
        controller = self.spec.controller if self.spec else None
        gates = controller.scheduling_gates if controller else None
        return tuple(gate.name for gate in gates or ())

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its conditions; none where status is missing."""
        return (self.status and self.status.conditions) or ()
