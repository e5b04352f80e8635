"""HorizontalPodAutoscaler of `autoscaling/v2`: the fields that a cell writes, and those it reads.

The kind is Kubernetes' own. Its controller defaults many more fields, which are neither compared
nor written: a field that two writers set would be written for ever.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from compute_api_types.meta import ObjectMeta, Resource
from compute_api_types.model import Model
from compute_api_types.neighbours.foreign import ForeignStatus
from compute_api_types.scalars import Int32, Int64, PlainList, QuantityText

ABLE_TO_SCALE: Final = "AbleToScale"
SCALING_ACTIVE: Final = "ScalingActive"
SCALING_LIMITED: Final = "ScalingLimited"
RESOURCE: Final = "Resource"
"""The only type of metric that we write."""
UTILIZATION: Final = "Utilization"
AVERAGE_VALUE: Final = "AverageValue"


class ScaleTargetRef(Model):
    """The object whose scale subresource is written."""

    api_version: str
    kind: str
    name: str


class AutoscalerTarget(Model):
    """When to scale: per cent of a request, or an amount, per Pod."""

    type: str
    average_utilization: Int32 | None = None
    average_value: QuantityText | None = None


class AutoscalerResource(Model):
    """A resource of the Pods."""

    name: str
    target: AutoscalerTarget


class AutoscalerMetric(Model):
    """Something to scale by."""

    type: str
    resource: AutoscalerResource | None = None


class HorizontalPodAutoscalerSpec(Model):
    """What is scaled, between which numbers, by what."""

    scale_target_ref: ScaleTargetRef
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0
    metrics: PlainList[AutoscalerMetric] | None = None


class HorizontalPodAutoscalerStatus(ForeignStatus):
    """Whether it works; its numbers are not read, because the deployment has them."""

    observed_generation: Int64 | None = None


class HorizontalPodAutoscaler(Model):
    """Moves the number of a deployment between two bounds, by the load of its Pods."""

    api_version: Literal["autoscaling/v2"] = "autoscaling/v2"
    kind: Literal["HorizontalPodAutoscaler"] = "HorizontalPodAutoscaler"
    metadata: ObjectMeta
    spec: HorizontalPodAutoscalerSpec | None = None
    status: HorizontalPodAutoscalerStatus | None = None

    RESOURCE: ClassVar = Resource(
        "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"
    )
