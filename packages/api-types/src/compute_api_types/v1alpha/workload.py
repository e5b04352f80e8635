"""Workload: what a user writes, naming the cities it must run in (`docs/spec/api.md` 4).

The only kind of the three that always has a spec, because its schema requires it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from compute_api_types import reasons
from compute_api_types.conditions import AVAILABLE, READY, Condition, defaulted
from compute_api_types.meta import API_VERSION, GROUP, VERSION, ObjectMeta, Resource
from compute_api_types.model import Model
from compute_api_types.scalars import (
    Counter32,
    Counter64,
    DistinctInSchema,
    FilledList,
    OpaqueObject,
    PlainList,
)
from compute_api_types.v1alpha.instance import WAITING, InstanceTemplate
from compute_api_types.v1alpha.scale_settings import ScaleSettings


class Placement(Model):
    """A set of cities with one scale."""

    name: str = Field(description="A DNS label, unique in the Workload.")
    city_codes: Annotated[PlainList[str], DistinctInSchema(by_name=False)] = Field(
        description="The cities; each at most once in the Workload."
    )
    scale_settings: ScaleSettings = Field(description="How many instances run in each city.")


class WorkloadSpec(Model):
    """What is to run, and where."""

    template: InstanceTemplate = Field(description="What the instances are made from.")
    placements: Annotated[FilledList[Placement], DistinctInSchema(by_name=True)] = Field(
        description="Where they run."
    )


class PlacementStatus(Model):
    """How one placement is doing."""

    name: str = Field(description="The placement.")
    conditions: PlainList[Condition] | None = Field(
        default=None, description="What is observed about it."
    )
    replicas: Counter32 = Field(default=0, description="Instances that exist.")
    current_replicas: Counter32 = Field(
        default=0, description="Of updatedReplicas those that the provider has realised."
    )
    updated_replicas: Counter32 = Field(
        default=0, description="Instances that run the current template."
    )
    desired_replicas: Counter32 = Field(default=0, description="Instances that are to exist.")
    ready_replicas: Counter32 = Field(default=0, description="Instances that are ready.")


class WorkloadStatus(Model):
    """How a Workload is doing."""

    conditions: PlainList[Condition] | None = Field(
        default=None, description="What is observed about it."
    )
    deployments: Counter32 = Field(
        default=0, description="Its deployments that exist, those being deleted included."
    )
    replicas: Counter32 = Field(default=0, description="Instances that exist.")
    current_replicas: Counter32 = Field(
        default=0, description="Of updatedReplicas those that the provider has realised."
    )
    updated_replicas: Counter32 = Field(
        default=0, description="Instances that run the current template."
    )
    desired_replicas: Counter32 = Field(default=0, description="Instances that are to exist.")
    ready_replicas: Counter32 = Field(default=0, description="Instances that are ready.")
    observed_generation: Counter64 = Field(
        default=0, description="The generation this status was computed from; 0 means none yet."
    )
    placements: PlainList[PlacementStatus] | None = Field(
        default=None, description="Its placements, by name."
    )
    gateway: OpaqueObject | None = Field(
        default=None,
        description="The status of a gateway, where its controller writes one; kept as it is.",
    )

    @classmethod
    def defaulted(cls) -> WorkloadStatus:
        """The status of the schema, before the first write of a controller (api.md 7)."""
        types = (AVAILABLE, READY)
        return cls(conditions=tuple(defaulted(each, reasons.PENDING, WAITING) for each in types))


class Workload(Model):
    """Something to run in the cities that its placements name."""

    api_version: Literal["compute.datumapis.com/v1alpha"] = API_VERSION
    kind: Literal["Workload"] = "Workload"
    metadata: ObjectMeta
    spec: WorkloadSpec = Field(description="What is to run, and where.")
    status: WorkloadStatus | None = Field(default=None, description="How it is doing.")

    RESOURCE: ClassVar = Resource(GROUP, VERSION, "Workload", "workloads")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its conditions; none where status is missing."""
        return (self.status and self.status.conditions) or ()
