"""Rules 49, 64, 68, 65, 50–56 and 67: how many instances run, and by which metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compute_api_types.validation.document import as_list
from compute_api_types.validation.errors import forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors

_MOST_REPLICAS: Final = 1000
POLICY: Final = "OrderedReady"
METRICS: Final = ("cpu", "memory")
# The order decides which one is too many when several are set.
_TARGETS: Final = ("averageValue", "averageUtilization")
_INSTEAD: Final = "use averageValue or averageUtilization"


def review_scale_settings(settings: Node) -> Errors:
    # An absent number reads as 0, as in every client that knows no absent integers.
    least = settings.integer("minReplicas") or 0
    most = settings.integer("maxReplicas")
    if not 1 <= least <= _MOST_REPLICAS:  # 49
        detail = f"must be between 1 and {_MOST_REPLICAS}"
        yield invalid(settings.path.field("minReplicas"), least, detail)
    elif most is not None and most < least:  # 64
        detail = "must not be less than minReplicas"
        yield invalid(settings.path.field("maxReplicas"), most, detail)
    if most is not None and most > _MOST_REPLICAS:  # 68
        detail = f"must be at most {_MOST_REPLICAS}"
        yield invalid(settings.path.field("maxReplicas"), most, detail)
    policy = settings.text("instanceManagementPolicy")
    if policy not in {"", POLICY}:  # 65
        yield not_supported(settings.path.field("instanceManagementPolicy"), policy, [POLICY])
    if most is not None:
        yield from _review_metrics(settings)


def _review_metrics(settings: Node) -> Errors:
    if not as_list(settings.content.get("metrics")):  # 50
        yield required(settings.path.field("metrics"), "maxReplicas needs at least one metric")
    for metric in settings.elements("metrics", named=False):
        resource = metric.object("resource")
        if resource is None:  # 51
            yield required(metric.path.field("resource"), "a metric is about a resource")
            continue
        if resource.text("name") not in METRICS:  # 52
            yield not_supported(resource.path.field("name"), resource.text("name"), METRICS)
        yield from _review_target(resource.section("target"))


def _review_target(target: Node) -> Errors:
    # 67: an autoscaler takes a total of a resource, and never scales by it.
    has_total = target.has("value")
    if has_total:
        yield forbidden(target.path.field("value"), _INSTEAD)
    present = [name for name in _TARGETS if target.has(name)]
    if not present:
        if not has_total:  # 56
            yield required(target.path, f"must have one of {', '.join(_TARGETS)}")
        return
    first, *others = present
    if first == "averageUtilization":
        yield from _review_utilization(target)
    else:
        yield from _review_average(target)
    for other in others:  # 53
        yield forbidden(target.path.field(other), "a metric has exactly one target")


def _review_average(target: Node) -> Errors:
    amount = target.amount("averageValue")
    # Text that is no quantity has been reported with the types.
    if amount is not None and amount.exact <= 0:  # 54
        yield invalid(target.path.field("averageValue"), amount, "must be greater than 0")


def _review_utilization(target: Node) -> Errors:
    utilization = target.integer("averageUtilization")
    if utilization is not None and utilization < 1:  # 55
        yield invalid(target.path.field("averageUtilization"), utilization, "must be at least 1")
