"""Copies of deployments whose data Karmada does not distribute: the hub gate `PropagateDeps` is off
(referenced-data.md 5).

Without the gate a binding never gets the annotation with its dependencies, and Instances wait with
`AwaitingPropagation` while no object on the hub shows an error. One binding is read for a copy that
has waited five minutes, and again every five minutes for as long as it waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_api_types import labels, reasons
from compute_api_types.referenced_data.annotations import parse_expected
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.referenced_data.delays import (
    DISTRIBUTION_PATIENCE,
    DISTRIBUTION_RECHECK,
)
from compute_management_operator.planes import BINDING, DEPLOYMENT, HUB
from compute_management_operator.stored_status import read_conditions
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.store import CachedObject, Caches
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.core.objects import Metadata, Snapshot

WAITING: Final = "waiting-for-data"


def index_by_wait(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    """Hub deployments with data that can be delivered, and a cell that waits for it."""
    annotations = metadata.annotations
    if labels.REFERENCED_DATA_ERROR in annotations or metadata.is_deleting:
        return ()
    if not parse_expected(annotations.get(labels.EXPECTED_REFERENCED_DATA)):
        return ()
    reported = read_conditions(member_object(body, "status"))
    is_waiting = any(one.reason == reasons.REFERENCED_DATA_NOT_READY for one in reported)
    return ("yes",) if is_waiting else ()


INDEXES: Final[Mapping[str, IndexFunction]] = {WAITING: index_by_wait}


@dataclass(slots=True)
class _WaitingCopy:
    """One copy that waits."""

    since: timedelta
    read_at: timedelta | None = None
    is_undistributed: bool = False


class DataDistribution:
    """What is known of the copies that wait; counted from when this process saw them wait."""

    def __init__(self, reads: ApiReader, clock: Clock) -> None:
        self._reads = reads
        self._clock = clock
        self._waits: dict[ObjectKey, _WaitingCopy] = {}

    def find_due(self, caches: Caches) -> Iterator[CachedObject]:
        """Notes which copies wait; those with a binding that is to be read now."""
        if HUB not in caches.planes(Role.HUB):
            return
        copies, now = caches.lister(HUB, DEPLOYMENT), self._clock.monotonic()
        if not copies.is_synced:
            return
        entries = {entry.key: entry for entry in copies.entries_by_index(WAITING, "yes")}
        self._waits = {key: self._waits.get(key) or _WaitingCopy(now) for key in entries}
        yield from (entry for key, entry in entries.items() if _is_due(self._waits[key], now))

    async def check(self, hub_name: str, name: str) -> None:
        """Reads the binding of a copy that is due; no read for any other."""
        wait = self._waits.get(ObjectKey(HUB, DEPLOYMENT, hub_name, name))
        now = self._clock.monotonic()
        if wait is None or not _is_due(wait, now):
            return
        wait.read_at = now
        try:
            binding = await self._reads.get(
                ObjectKey(HUB, BINDING, hub_name, f"{name}-{DEPLOYMENT.kind.lower()}")
            )
        except ReconcileError:
            return  # what was read last stands: the deployment itself must not wait for this
        # Without a binding the copy is delivered nowhere, which has an alert of its own.
        wait.is_undistributed = isinstance(binding, Snapshot) and (
            labels.KARMADA_DEPENDENCIES not in binding.metadata.annotations
        )

    def count(self) -> int:
        """Copies whose data is not distributed."""
        return sum(wait.is_undistributed for wait in self._waits.values())


def _is_due(wait: _WaitingCopy, now: timedelta) -> bool:
    if now - wait.since < DISTRIBUTION_PATIENCE:
        return False
    return wait.read_at is None or now - wait.read_at >= DISTRIBUTION_RECHECK
