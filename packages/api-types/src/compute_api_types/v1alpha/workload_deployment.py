"""WorkloadDeployment: what one placement of a Workload runs in one city (`docs/spec/api.md` 3).

The unit of routing: it exists in the project, on the hub and on a cell, and its `cityCode` never
changes. A stored one may lack `spec`: it is optional here, and a reader must expect None.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from compute_api_types import reasons
from compute_api_types.conditions import (
    AVAILABLE,
    READY,
    REPLICAS_READY,
    Condition,
    defaulted,
)
from compute_api_types.meta import API_VERSION, GROUP, VERSION, ObjectMeta, Resource
from compute_api_types.model import Model
from compute_api_types.scalars import Counter32, Counter64, Integer, PlainList
from compute_api_types.v1alpha.instance import WAITING, InstanceTemplate, LocationReference
from compute_api_types.v1alpha.scale_settings import ScaleSettings


class WorkloadReference(Model):
    """The Workload a deployment belongs to."""

    name: str = Field(description="Its name.")
    uid: str = Field(description="Its UID in the project.")


class WorkloadDeploymentSpec(Model):
    """What one placement runs in one city."""

    workload_ref: WorkloadReference = Field(description="The Workload it belongs to.")
    placement_name: str = Field(description="The placement it came from.")
    city_code: str = Field(description="The city; never changes.")
    template: InstanceTemplate = Field(description="What its instances are made from.")
    scale_settings: ScaleSettings = Field(description="How many instances run.")
    replicas: Annotated[int, Integer(32, minimum=0)] | None = Field(
        default=None,
        description="Of a cell alone: how many instances its autoscaler asks for, written through "
        "the scale subresource; no meaning without maxReplicas and metrics.",
    )


class WorkloadDeploymentStatus(Model):
    """How a deployment is doing."""

    location: LocationReference | None = Field(
        default=None, description="The Location that matches its city."
    )
    conditions: PlainList[Condition] | None = Field(
        default=None, description="What is observed about it."
    )
    replicas: Counter32 = Field(
        default=0, description="Instances that exist, those being deleted included."
    )
    current_replicas: Counter32 = Field(
        default=0, description="Of updatedReplicas those that the provider has realised."
    )
    updated_replicas: Counter32 = Field(
        default=0, description="Instances that run the current template, ready or not."
    )
    desired_replicas: Counter32 = Field(default=0, description="Instances that are to exist.")
    ready_replicas: Counter32 = Field(default=0, description="Instances that are ready.")
    observed_generation: Counter64 = Field(
        default=0, description="The generation this status answers to; 0 means none yet."
    )
    observed_template_generation: Annotated[int, Integer(64, minimum=0)] | None = Field(
        default=None,
        description="The hub generation the cell has acted on; no meaning in a project.",
    )
    observed_template_uid: str | None = Field(
        default=None,
        validation_alias="observedTemplateUID",
        serialization_alias="observedTemplateUID",
        description="The UID of the hub deployment this status belongs to, empty while the cell's "
        "copy is being deleted; no meaning in a project.",
    )
    selector: str | None = Field(
        default=None,
        description="Of a cell alone: label selector of the Pods of an autoscaled deployment.",
    )
    suspended: bool | None = Field(
        default=None,
        description="True once its cell has suspended it; absent means false.",
    )

    @classmethod
    def defaulted(cls) -> WorkloadDeploymentStatus:
        """The status of the schema, before the first write of a controller (api.md 7)."""
        types = (AVAILABLE, REPLICAS_READY, READY)
        return cls(conditions=tuple(defaulted(each, reasons.PENDING, WAITING) for each in types))


class WorkloadDeployment(Model):
    """What one placement of a Workload runs in one city."""

    api_version: Literal["compute.datumapis.com/v1alpha"] = API_VERSION
    kind: Literal["WorkloadDeployment"] = "WorkloadDeployment"
    metadata: ObjectMeta
    spec: WorkloadDeploymentSpec | None = Field(
        default=None, description="What runs, and in which city."
    )
    status: WorkloadDeploymentStatus | None = Field(default=None, description="How it is doing.")

    RESOURCE: ClassVar = Resource(GROUP, VERSION, "WorkloadDeployment", "workloaddeployments")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its conditions; none where status is missing."""
        return (self.status and self.status.conditions) or ()
