"""Metrics of an autoscaler: rendered from scale settings, and compared with stored ones. Pure
(autoscaling.md 3).

A server spells a quantity in its own way: written as the settings spell it, `1024Mi` would replace
`1Gi` with every pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from compute_api_types.neighbours import autoscaling as kubernetes
from compute_api_types.quantity import QuantityError, is_same_quantity
from compute_cell_operator.autoscaling.demand import ScaleDemand, ScaleMetric
from compute_operator_kit.core.json import Json, JsonObject, JsonValue, member_object, member_text


def derive_metrics(demand: ScaleDemand, stored: Json) -> JsonValue:
    """The metrics; as they are stored where these mean the same."""
    desired = [_render(metric) for metric in demand.metrics]
    if isinstance(stored, list) and _is_same(stored, desired):
        return stored
    return desired


def _render(metric: ScaleMetric) -> JsonObject:
    target: JsonObject
    if metric.utilization is not None:
        target = {"type": kubernetes.UTILIZATION, "averageUtilization": metric.utilization}
    else:
        # As text, because a server stores every quantity so.
        target = {"type": kubernetes.AVERAGE_VALUE, "averageValue": str(metric.average_value)}
    return {"type": kubernetes.RESOURCE, "resource": {"name": metric.resource, "target": target}}


def _is_same(stored: Sequence[Json], desired: Sequence[JsonObject]) -> bool:
    return len(stored) == len(desired) and all(map(_is_same_metric, stored, desired))


def _is_same_metric(stored: Json, desired: JsonObject) -> bool:
    if not isinstance(stored, dict) or stored.keys() != desired.keys():
        return False
    was, desires = member_object(stored, "resource"), member_object(desired, "resource")
    before, after = member_object(was, "target"), member_object(desires, "target")
    amount, other = before.get("averageValue"), after.get("averageValue")
    if isinstance(amount, str) and isinstance(other, str) and _is_same_amount(amount, other):
        after = {**after, "averageValue": amount}
    return (
        stored.get("type") == desired["type"]
        and member_text(was, "name") == member_text(desires, "name")
        and before == after
    )


def _is_same_amount(one: str, other: str) -> bool:
    try:
        return is_same_quantity(one, other)
    except QuantityError:
        return False
