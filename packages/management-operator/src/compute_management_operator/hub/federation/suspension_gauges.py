"""Gauges of suspensions: how many there are, and which of them no cell has confirmed (suspension.md
5).

A cell that was cut off when the order came runs on until it hears it, and no condition can show
that. How long a hub deployment is unconfirmed is counted from when this process saw it first: a
restart delays the gauge and loses nothing else.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from enum import StrEnum
from typing import Final

from compute_management_operator.discovery.observe import SUSPENSION as PROJECT_SUSPENSION
from compute_management_operator.hub import indexes, metrics
from compute_management_operator.planes import CLUSTER, DEPLOYMENT, HUB, PROJECT
from compute_operator_kit.cache.lister import CachedObject
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.core.metrics import MetricsPort

PATIENCE: Final = timedelta(seconds=60)


class Cause(StrEnum):
    """Why an order may not have been carried out: label `cause` of the gauge."""

    CELL_UNREACHABLE = "cell_unreachable"  # Karmada does not reach a cell of the city
    NOT_ACTED = "not_acted"
    RESUME = "resume"  # the order to go on


class SuspensionGauges:
    """The gauges, and since when each hub deployment is unconfirmed."""

    def __init__(self, clock: Clock, measures: MetricsPort) -> None:
        self._clock = clock
        self._measures = measures
        self._since: dict[tuple[ObjectKey, str], timedelta] = {}

    def update(self, caches: Caches) -> None:
        self._measures.gauge(metrics.SUSPENDED_PROJECTS, _count_projects(caches))
        if HUB not in caches.planes(Role.HUB):
            return
        copies = caches.lister(HUB, DEPLOYMENT)
        if not copies.is_synced:
            return  # an incomplete cache confirms nothing
        suspended = copies.entries_by_index(indexes.SUSPENSION, indexes.SUSPENDED)
        self._measures.gauge(metrics.SUSPENDED_DEPLOYMENTS, len(suspended))
        causes = self._count_unconfirmed(caches)
        for cause in Cause:
            self._measures.gauge(metrics.SUSPENSION_UNCONFIRMED, causes[cause], cause=cause.value)

    def _count_unconfirmed(self, caches: Caches) -> Counter[Cause]:
        now, copies = self._clock.monotonic(), caches.lister(HUB, DEPLOYMENT)
        awaited = {
            (entry.key, order): entry
            for order in (indexes.STOP_UNCONFIRMED, indexes.RESUME_UNCONFIRMED)
            for entry in copies.entries_by_index(indexes.SUSPENSION, order)
        }
        self._since = {one: self._since.get(one, now) for one in awaited}
        return Counter(
            _derive_cause(order, entry, caches)
            for (key, order), entry in awaited.items()
            if now - self._since[(key, order)] > PATIENCE
        )


def _derive_cause(order: str, entry: CachedObject, caches: Caches) -> Cause:
    if order == indexes.RESUME_UNCONFIRMED:
        return Cause.RESUME
    code = indexes.read_routing(entry.metadata)
    clusters = caches.lister(HUB, CLUSTER).entries_by_index(indexes.CITY, code)
    statuses = {indexes.find_value(one, indexes.CLUSTER_READY) for one in clusters}
    return Cause.NOT_ACTED if statuses == {"True"} else Cause.CELL_UNREACHABLE


def _count_projects(caches: Caches) -> int:
    return sum(
        len(caches.lister(root, PROJECT).entries_by_index(PROJECT_SUSPENSION, "True"))
        for root in caches.planes(Role.ROOT)
    )
