"""The autoscaler of one deployment: made, kept equal, deleted; and the number it starts from. Pure
(autoscaling.md 3).

An autoscaler that reads the number 0 switches itself off, so the number is written first. Fields
that Kubernetes defaults are neither compared nor written, and metrics are compared by their value:
`1Gi` and `1024Mi` would be written in turn for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from compute_api_types import labels, names, reasons
from compute_cell_operator.autoscaling.delays import RETRY_TAKEN, RETRY_UNSERVED
from compute_cell_operator.autoscaling.demand import find_fault
from compute_cell_operator.autoscaling.metric_targets import derive_metrics
from compute_cell_operator.autoscaling.observe import ExistingAutoscaler, ObservedAutoscaling
from compute_cell_operator.planes import AUTOSCALER, DEPLOYMENT
from compute_operator_kit.core.json import Json, JsonMapping
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, OwnerReference
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    Intent,
    OwnedFields,
    Plan,
    RequeueAfter,
    RequireExists,
    SetScale,
)


def plan(observed: ObservedAutoscaling, stabilization: timedelta) -> Plan:
    """`stabilization`: how long a lower number must hold before the autoscaler takes it."""
    if observed.is_resting:
        return Plan()
    if not observed.demand.is_autoscaled:
        return Plan(tuple(_remove(observed)))
    if find_fault(observed.demand):
        return Plan()  # an edit enqueues the key; an autoscaler of earlier settings stays
    start = tuple(_start(observed))
    if not observed.is_served:
        return Plan(
            (*start, RequeueAfter(observed.key, reasons.AUTOSCALER_MISSING, RETRY_UNSERVED))
        )
    if observed.is_name_taken:
        return Plan((*start, RequeueAfter(observed.key, reasons.AUTOSCALER_MISSING, RETRY_TAKEN)))
    return Plan((*start, *_ensure(observed, stabilization)))


def _remove(observed: ObservedAutoscaling) -> Iterator[Delete]:
    existing = observed.existing
    if isinstance(existing, ExistingAutoscaler) and not existing.is_deleting:
        yield Delete(existing.key, existing.uid, reasons.NOT_AUTOSCALED)


def _start(observed: ObservedAutoscaling) -> Iterator[SetScale]:
    """The number that runs now, from which the autoscaler goes on."""
    if not observed.demand.replicas and observed.desired:
        uid = observed.metadata.uid
        yield SetScale(observed.key, uid, observed.desired, reasons.NUMBER_ABSENT)


def _ensure(observed: ObservedAutoscaling, stabilization: timedelta) -> Iterator[Intent]:
    existing, key = observed.existing, observed.key
    if isinstance(existing, ExistingAutoscaler) and existing.is_deleting:
        return  # its end enqueues the key
    stored = None if isinstance(existing, Absent) else existing.metrics
    desired = OwnedFields(
        labels=_labels(observed),
        owners=(_refer_to_owner(observed),),
        merge={"spec": _spec(observed, stored, stabilization)},
    )
    if isinstance(existing, ExistingAutoscaler):
        yield Ensure(existing.key, desired, reasons.DRIFTED, uid=existing.uid)
        return
    under = RequireExists(key, lock=key, uid=observed.metadata.uid)
    made = ObjectKey(key.plane, AUTOSCALER, key.namespace, key.name)
    yield Ensure(made, desired, reasons.AUTOSCALER_MISSING, requires=under)


def _labels(observed: ObservedAutoscaling) -> dict[str, str | None]:
    links = {key: names.derive_label_value(text).value for key, text in observed.links}
    return {labels.SERVICE_NAME: labels.OUR_SERVICE, **links}


def _refer_to_owner(observed: ObservedAutoscaling) -> OwnerReference:
    return OwnerReference(
        DEPLOYMENT.api_version,
        DEPLOYMENT.kind,
        observed.key.name,
        observed.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def _spec(observed: ObservedAutoscaling, stored: Json, stabilization: timedelta) -> JsonMapping:
    demand = observed.demand
    return {
        "scaleTargetRef": {
            "apiVersion": DEPLOYMENT.api_version,
            "kind": DEPLOYMENT.kind,
            "name": observed.key.name,
        },
        "minReplicas": demand.min_replicas,
        "maxReplicas": demand.max_replicas,
        "metrics": derive_metrics(demand, stored),
        "behavior": {
            "scaleDown": {"stabilizationWindowSeconds": int(stabilization.total_seconds())}
        },
    }
