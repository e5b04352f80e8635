"""Live reads of the hub before a copy is written: its Namespace and its deployment.

By GET, since only Instances are watched there. A read serves updates for ten seconds and creates
never: a copy must not be created for an owner that has just been deleted. The copy itself is read
only where its name turned out to be taken by an object that is in no cache of ours. Errors of the
hub are raised: an unreadable object is not an absent one, and the key waits until the hub answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from compute_api_types import labels
from compute_cell_operator.planes import DEPLOYMENT, HUB, NAMESPACE
from compute_cell_operator.write_back.delays import HUB_READ_VALID
from compute_cell_operator.write_back.observe import (
    HubFacts,
    InstanceDocument,
    ObservedCopy,
    read_document,
)
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot

PRUNED_FROM: Final = 1024  # entries


class CopyReader(Protocol):
    """The one method of `KubeClient` that is used here."""

    async def get(self, key: ObjectKey) -> Snapshot | Absent: ...


@dataclass(frozen=True, slots=True)
class _TimedRead:
    result: Metadata | Absent
    at: timedelta  # when the request was sent


class HubReads:
    """Live reads, and those of the last seconds."""

    def __init__(self, kube: Callable[[], CopyReader], clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._recent: dict[ObjectKey, _TimedRead] = {}

    def __len__(self) -> int:
        return len(self._recent)

    async def read(
        self, observed: ObservedCopy, *, is_create: bool, is_taken: bool = False
    ) -> HubFacts:
        """For an Instance that has its linking labels; with its copy where the name was taken."""
        namespace_name = observed.copy_key.namespace
        name = observed.instance.metadata.labels[labels.WORKLOAD_DEPLOYMENT_NAME]
        async with asyncio.TaskGroup() as reads:
            namespace = reads.create_task(
                self._read(ObjectKey(HUB, NAMESPACE, "", namespace_name), is_live=is_create)
            )
            deployment = reads.create_task(
                self._read(ObjectKey(HUB, DEPLOYMENT, namespace_name, name), is_live=is_create)
            )
            copy = reads.create_task(self.read_copy(observed.copy_key)) if is_taken else None
        return HubFacts(
            namespace.result(), deployment.result(), copy.result() if copy is not None else None
        )

    async def read_copy(self, key: ObjectKey) -> InstanceDocument | Absent:
        """The object under the name of a copy, whichever writer created it."""
        copy = await self._kube().get(key)
        return read_document(copy) if isinstance(copy, Snapshot) else copy

    async def _read(self, key: ObjectKey, *, is_live: bool) -> Metadata | Absent:
        now = self._clock.monotonic()
        recent = self._recent.get(key)
        if recent is not None and not is_live and now - recent.at <= HUB_READ_VALID:
            return recent.result
        existing = await self._kube().get(key)
        result = existing.metadata if isinstance(existing, Snapshot) else existing
        self._prune(now)
        self._recent[key] = _TimedRead(result, now)
        return result

    def _prune(self, now: timedelta) -> None:
        if len(self._recent) >= PRUNED_FROM:
            oldest = now - HUB_READ_VALID
            self._recent = {key: read for key, read in self._recent.items() if read.at >= oldest}
