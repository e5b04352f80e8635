"""Looks at the hub: the Lease of each cell by a live list, its Cluster from the cache.

The list is live, because a watch that is silent looks like a cell that is. Everything in a Lease
comes from its cell, and may be anything: what cannot be read counts as no Lease, which darkens no
cell and hides none but its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from compute_api_types import conditions, labels, names
from compute_management_operator.hub import indexes
from compute_management_operator.hub.hearing.judge import CellCluster, CellLease, Look, Order
from compute_management_operator.planes import CLUSTER, HUB, INSTANCE, LEASE
from compute_management_operator.stored_status import find_condition
from compute_operator_kit.cache.lister import CachedObject
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.client.interface import FieldOwner, Page
from compute_operator_kit.client.list_bounds import ListBounds
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.clock import ZERO, Clock
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.json import member_int, member_object, member_text
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.core.objects import Absent, Snapshot

READER: Final = FieldOwner("hearing", labels.FEDERATION_MANAGER)
LONGEST_LOOK: Final = timedelta(seconds=10)  # a longer one shows nothing of now
LONGEST_DURATION: Final = timedelta(hours=1)  # of a Lease; the verdict waits 10 min at most

logger = logging.getLogger(__name__)


class HubLooks:
    """The reads of all looks of one process."""

    def __init__(self, context: OperatorContext, clock: Clock) -> None:
        self._context = context
        self._clock = clock
        self._ignored: dict[str, str] = {}  # annotations that mean nothing, by Cluster

    async def look(self) -> Look:
        """One look; an error of the hub, or an incomplete cache, raises `ReconcileError` or
        `TimeoutError`.
        """
        sent = self._clock.monotonic()
        async with asyncio.timeout(LONGEST_LOOK.total_seconds()):
            leases = await self._list_leases()
        return Look(sent, self._clock.monotonic(), leases, self._find_clusters())

    async def is_unready(self, cell: str) -> bool:
        """Whether a fresh read shows that Karmada does not reach the cell."""
        async with asyncio.timeout(LONGEST_LOOK.total_seconds()):
            kube = self._context.kube(HUB, READER)
            cluster = await kube.get(ObjectKey(HUB, CLUSTER, "", cell))
        if isinstance(cluster, Absent):
            return False
        status = member_object(cluster.decode(), "status")
        ready = find_condition(status, conditions.READY)
        return ready is not None and ready.status in {"False", "Unknown"}

    async def _list_leases(self) -> Mapping[str, CellLease]:
        kube = self._context.kube(HUB, READER)
        leases: dict[str, CellLease] = {}
        token, bounds = "", ListBounds(HUB, LEASE)
        while True:
            page = await kube.list(LEASE, namespace=names.CELL_LEASES, continue_token=token)
            if not isinstance(page, Page):
                raise UnavailableError("ListIncomplete", "listing leases: no answer", plane=HUB)
            bounds.count(page, token)
            for item in page.items:
                cell = names.parse_cell_lease(item.snapshot.key.name)
                if cell is not None:
                    leases[cell] = read_lease(item.snapshot)
            token = page.continue_token
            if not token:
                return leases

    def _find_clusters(self) -> Mapping[str, CellCluster]:
        caches = self._context.caches
        if not is_readable(caches):
            raise UnavailableError("NotSynced", "reading Clusters: not complete", plane=HUB)
        view = caches.lister(HUB, CLUSTER)
        entries = [
            entry
            for name in view.index_values(indexes.NAME)
            for entry in view.entries_by_index(indexes.NAME, name)
        ]
        self._ignored = {
            name: value
            for name, value in self._ignored.items()
            if any(entry.key.name == name for entry in entries)
        }
        return {entry.key.name: self._read_cluster(entry) for entry in entries}

    def _read_cluster(self, entry: CachedObject) -> CellCluster:
        return CellCluster(
            is_ready=indexes.find_value(entry, indexes.CLUSTER_READY) == "True",
            order=self._read_order(entry),
            city_code=indexes.read_routing(entry.metadata),
        )

    def _read_order(self, entry: CachedObject) -> Order:
        name, value = entry.key.name, entry.metadata.annotations.get(labels.UNREACHABLE, "")
        try:
            order = Order(value)
        except ValueError:
            if self._ignored.get(name) != value:
                logger.warning(
                    "Ignoring annotation of Cluster",
                    extra={"Cluster": name, "annotation": labels.UNREACHABLE},
                )
            self._ignored[name] = value
            return Order.NONE
        self._ignored.pop(name, None)
        return order


def is_readable(caches: Caches) -> bool:
    return HUB in caches.planes(Role.HUB) and caches.lister(HUB, CLUSTER).is_synced


def read_lease(snapshot: Snapshot) -> CellLease:
    spec = member_object(snapshot.decode(), "spec")
    seconds = member_int(spec, "leaseDurationSeconds")
    longest = LONGEST_DURATION // timedelta(seconds=1)
    return CellLease(
        version=snapshot.metadata.resource_version,
        duration=max(ZERO, timedelta(seconds=min(seconds, longest))),
        is_renewed=bool(member_text(spec, "renewTime")),
    )


def find_absent_cells(caches: Caches) -> frozenset[str]:
    """Cells in labels of hub Instances without a Cluster; none while a cache is not complete."""
    if not is_readable(caches) or not caches.lister(HUB, INSTANCE).is_synced:
        return frozenset()
    clusters = caches.lister(HUB, CLUSTER)
    named = caches.lister(HUB, INSTANCE).index_values(indexes.CELL)
    return frozenset(cell for cell in named if clusters.entry("", cell) is None)
