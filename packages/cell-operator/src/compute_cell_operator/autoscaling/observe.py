"""Cache reads of autoscaling: a deployment, its autoscaler, and what else has the name.

Only autoscalers with our label are cached. A name that the cache lacks may be taken all the same,
so it is read live before an autoscaler is made: one of somebody else must stay as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from compute_api_types import labels, names
from compute_cell_operator.autoscaling.demand import (
    NO_DEMAND,
    ScaleDemand,
    derive_desired,
    read_demand,
)
from compute_cell_operator.autoscaling.memory import AutoscalingMemory
from compute_cell_operator.conditions import ReportedCondition, read_conditions
from compute_cell_operator.indexes import OWNER
from compute_cell_operator.planes import AUTOSCALER, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_operator_kit.cache.lister import is_unserved
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import Json, JsonObject, member_object, member_text
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable

NONE: Final = Absent()


@dataclass(frozen=True, slots=True)
class ExistingAutoscaler:
    """The autoscaler of a deployment, which it controls."""

    key: ObjectKey
    uid: Uid
    metrics: Json = None  # as they are stored
    is_deleting: bool = False


@dataclass(frozen=True, slots=True)
class ObservedAutoscaling:
    """One deployment at one moment, as far as its autoscaler depends on it."""

    key: ObjectKey
    metadata: Metadata
    demand: ScaleDemand
    links: tuple[tuple[str, str], ...] = ()  # linking labels with their texts
    occupied: int = 0  # the highest slot with an Instance, and one
    existing: ExistingAutoscaler | Absent = NONE
    is_name_taken: bool = False  # by an autoscaler that the deployment does not control
    is_served: bool = True
    is_wrong_city: bool = False
    is_namespace_deleting: bool = False

    @property
    def is_resting(self) -> bool:
        """Nothing of its autoscaler is changed now."""
        is_going = self.metadata.is_deleting or self.is_namespace_deleting
        return is_going or self.is_wrong_city or labels.is_suspended(self.metadata.annotations)

    @property
    def desired(self) -> int:
        return derive_desired(self.demand, self.occupied)


def observe(
    key: ObjectKey, caches: Caches, live: Snapshot | Absent, cell_city: str = ""
) -> ObservedAutoscaling | None:
    """None where the deployment is absent, or a cache is incomplete; `live` is the object of its
    name, read because the cache lacks it.
    """
    deployment = caches.lister(key.plane, DEPLOYMENT).get(key.namespace, key.name)
    instances = caches.lister(key.plane, INSTANCE)
    if not isinstance(deployment, Snapshot) or not instances.is_synced:
        return None
    autoscalers = caches.lister(key.plane, AUTOSCALER)
    is_served = not is_unserved(autoscalers)
    named = autoscalers.get(key.namespace, key.name) if is_served else Absent()
    if isinstance(named, Unreadable):
        return None
    if isinstance(named, Absent):
        named = live
    uid = deployment.metadata.uid
    spec = member_object(deployment.read(), "spec")
    owned = (one.metadata.name for one in instances.entries_by_index(OWNER, uid))
    is_ours = isinstance(named, Snapshot) and is_controlled_by(named.metadata, uid)
    namespace = caches.lister(key.plane, NAMESPACE).get("", key.namespace)
    return ObservedAutoscaling(
        key=key,
        metadata=deployment.metadata,
        demand=read_demand(spec),
        links=tuple(_read_links(deployment.metadata, spec)),
        occupied=count_occupied(key.name, owned),
        existing=_read_existing(named) if is_ours else Absent(),
        is_name_taken=isinstance(named, Snapshot) and not is_ours,
        is_served=is_served,
        is_wrong_city=bool(cell_city) and member_text(spec, "cityCode") != cell_city,
        is_namespace_deleting=isinstance(namespace, Snapshot) and namespace.metadata.is_deleting,
    )


def is_controlled_by(metadata: Metadata, uid: Uid) -> bool:
    return metadata.controller is not None and metadata.controller.uid == uid


def count_occupied(deployment: str, instances: Iterable[str]) -> int:
    """The highest slot among these Instances, and one. One that is being deleted counts: in a roll
    its successor takes the slot.
    """
    ordinals = (names.parse_ordinal(deployment, name) for name in instances)
    return max((one for one in ordinals if one is not None), default=-1) + 1


def _read_existing(named: Snapshot | Absent) -> ExistingAutoscaler | Absent:
    if isinstance(named, Absent):
        return named
    metrics = member_object(named.read(), "spec").get("metrics")
    metadata = named.metadata
    return ExistingAutoscaler(named.key, metadata.uid, metrics, metadata.is_deleting)


def _read_links(metadata: Metadata, spec: JsonObject) -> Iterable[tuple[str, str]]:
    workload = member_object(spec, "workloadRef")
    yield labels.WORKLOAD_DEPLOYMENT_UID, metadata.uid
    yield labels.WORKLOAD_DEPLOYMENT_NAME, metadata.name
    yield labels.WORKLOAD_NAME, member_text(workload, "name")
    yield labels.PLACEMENT_NAME, member_text(spec, "placementName")
    yield labels.CITY_CODE, member_text(spec, "cityCode")


# --- for the conditions of a deployment -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AutoscalerReport:
    """What an autoscaler reports of itself."""

    conditions: tuple[ReportedCondition, ...] = ()
    is_current: bool = True  # about its present settings


@dataclass(frozen=True, slots=True)
class ObservedScaling:
    """Autoscaling of one deployment, for its number and its conditions."""

    demand: ScaleDemand = NO_DEMAND
    is_on: bool = False  # in this cell
    is_known: bool = True  # False: nothing is concluded, and the stored conditions stand
    failure: str = ""  # of the last pass over its autoscaler
    report: AutoscalerReport | Absent = NONE

    @property
    def is_active(self) -> bool:
        return self.is_on and self.demand.is_autoscaled


NOT_SCALED: Final = ObservedScaling()


def observe_scaling(
    deployment: Snapshot, spec: JsonObject, caches: Caches, memory: AutoscalingMemory | None
) -> ObservedScaling:
    """Without a memory, autoscaling is off in this cell."""
    demand = read_demand(spec)
    if memory is None or not demand.is_autoscaled:
        return ObservedScaling(demand, is_on=memory is not None)
    key, uid = deployment.key, deployment.metadata.uid
    last = memory.find(key, uid)
    lister = caches.lister(key.plane, AUTOSCALER)
    is_served = not is_unserved(lister)
    named = lister.get(key.namespace, key.name) if is_served else Absent()
    if last is None or isinstance(named, Unreadable):
        return ObservedScaling(demand, is_on=True, is_known=False)
    return ObservedScaling(
        demand, is_on=True, failure=last.failure, report=_read_report(named, uid)
    )


def _read_report(named: Snapshot | Absent, uid: Uid) -> AutoscalerReport | Absent:
    if isinstance(named, Absent) or not is_controlled_by(named.metadata, uid):
        return Absent()
    status = member_object(named.read(), "status")
    observed = status.get("observedGeneration")
    # Some servers count no generations of this kind, and their controller reports none.
    is_current = type(observed) is not int or observed >= named.metadata.generation
    return AutoscalerReport(read_conditions(status), is_current)
