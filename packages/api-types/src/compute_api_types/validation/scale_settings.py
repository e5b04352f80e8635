"""Rules 49, 64, 65 and 50–56: how many instances run, and the metrics stored for later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compute_api_types.validation.document import as_list
from compute_api_types.validation.errors import forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors

_MOST_REPLICAS: Final = 1000
POLICY: Final = "OrderedReady"
METRIC: Final = "cpu"
# The order decides which one is too many when several are set.
_TARGETS: Final = ("value", "averageValue", "averageUtilization")


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
        if resource.text("name") != METRIC:  # 52
            yield not_supported(resource.path.field("name"), resource.text("name"), [METRIC])
        yield from _review_target(resource.section("target"))


def _review_target(target: Node) -> Errors:
    present = [name for name in _TARGETS if target.has(name)]
    if not present:  # 56
        yield required(target.path, f"must have one of {', '.join(_TARGETS)}")
        return
    first, *others = present
    if first == "averageUtilization":
        yield from _review_utilization(target)
    else:
        yield from _review_amount(target, first)
    for other in others:  # 53
        yield forbidden(target.path.field(other), "a metric has exactly one target")


def _review_amount(target: Node, name: str) -> Errors:
    amount = target.amount(name)
    # Text that is no quantity has been reported with the types.
    if amount is not None and amount.exact <= 0:  # 54
        yield invalid(target.path.field(name), amount, "must be greater than 0")


def _review_utilization(target: Node) -> Errors:
    utilization = target.integer("averageUtilization")
    if utilization is not None and utilization < 1:  # 55
        yield invalid(target.path.field("averageUtilization"), utilization, "must be at least 1")
