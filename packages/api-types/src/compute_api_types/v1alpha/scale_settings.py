"""How many instances run in each city (`docs/spec/api.md` 5). Schema only; limits are for
admission.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from compute_api_types.model import Model
from compute_api_types.scalars import FilledBySchema, Int32, PlainList, QuantityText

ORDERED_READY: Final = "OrderedReady"
"""The only instance management policy: one after the other, each ready before the next."""


class MetricTarget(Model):
    """When to scale; exactly one is set."""

    value: QuantityText | None = Field(
        default=None, description="Not usable: no autoscaler scales by a total."
    )
    average_value: QuantityText | None = Field(default=None, description="The value per instance.")
    average_utilization: Int32 | None = Field(
        default=None, description="Per cent of what an instance has."
    )


class ResourceMetric(Model):
    """A resource to scale by."""

    name: str = Field(description="The resource: cpu or memory.")
    target: MetricTarget = Field(description="When to scale.")


class Metric(Model):
    """Something to scale by."""

    resource: ResourceMetric | None = Field(default=None, description="A resource.")


class ScaleSettings(Model):
    """How many instances run in each city."""

    min_replicas: Int32 = Field(description="The number that runs, from 1 to 1000.")
    max_replicas: Int32 | None = Field(
        default=None,
        description="With metrics, the largest number that load makes run, from minReplicas to "
        "1000; each city decides for itself.",
    )
    metrics: PlainList[Metric] | None = Field(
        default=None, description="What to scale by, with maxReplicas."
    )
    instance_management_policy: (
        Annotated[str, FilledBySchema(ORDERED_READY, required=True)] | None
    ) = Field(
        default=None,
        description="In which order instances come and go; OrderedReady is the only one.",
    )
