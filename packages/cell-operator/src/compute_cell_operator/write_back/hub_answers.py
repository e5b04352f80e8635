"""Asks the hub what must be known before a copy is written: its Namespace and its deployment.

By GET, since nothing but Instances is watched there. An answer serves writes for ten seconds, a
create never: a copy must not be made for an owner that has just gone. The copy itself is asked for
only where its name turned out to be taken by what no cache of ours holds: a hub refuses a second of
the name by itself. Errors of the hub go through: not knowing is not absence, and the key waits
until the hub answers again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from compute_api_types import labels
from compute_cell_operator.kinds import DEPLOYMENT, NAMESPACE
from compute_cell_operator.plane_names import HUB
from compute_cell_operator.write_back.observe import (
    Document,
    HubAnswer,
    Seen,
    read_document,
)
from compute_operator_kit.clock import Clock
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent, Metadata, Snapshot

SERVES_FOR: Final = timedelta(seconds=10)  # cell.md 11
PRUNED_FROM: Final = 1024


class Reads(Protocol):
    """The part of the port `Kube` that asking needs."""

    async def get(self, key: ObjectKey) -> Snapshot | Absent: ...


@dataclass(frozen=True, slots=True)
class _Answer:
    found: Metadata | Absent
    at: timedelta  # when it was asked, which is before it was true


class HubAnswers:
    """The answers of the last seconds."""

    def __init__(self, kube: Callable[[], Reads], clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._answers: dict[ObjectKey, _Answer] = {}

    def __len__(self) -> int:
        return len(self._answers)

    async def ask(self, seen: Seen, *, is_create: bool, is_taken: bool = False) -> HubAnswer:
        """For an Instance that has its linking labels; with its copy where the name was taken."""
        within = seen.copy_key.namespace
        name = seen.instance.metadata.labels[labels.WORKLOAD_DEPLOYMENT_NAME]
        async with asyncio.TaskGroup() as asking:
            namespace = asking.create_task(
                self._find(ObjectKey(HUB, NAMESPACE, "", within), is_fresh=is_create)
            )
            deployment = asking.create_task(
                self._find(ObjectKey(HUB, DEPLOYMENT, within, name), is_fresh=is_create)
            )
            copy = asking.create_task(self.find_copy(seen.copy_key)) if is_taken else None
        return HubAnswer(
            namespace.result(), deployment.result(), copy.result() if copy is not None else None
        )

    async def find_copy(self, key: ObjectKey) -> Document | Absent:
        """What stands under the name of a copy, whoever made it."""
        found = await self._kube().get(key)
        return read_document(found) if isinstance(found, Snapshot) else found

    async def _find(self, key: ObjectKey, *, is_fresh: bool) -> Metadata | Absent:
        now = self._clock.monotonic()
        known = self._answers.get(key)
        if known is not None and not is_fresh and now - known.at <= SERVES_FOR:
            return known.found
        answer = await self._kube().get(key)
        found = answer.metadata if isinstance(answer, Snapshot) else answer
        self._prune(now)
        self._answers[key] = _Answer(found, now)
        return found

    def _prune(self, now: timedelta) -> None:
        if len(self._answers) >= PRUNED_FROM:
            oldest = now - SERVES_FOR
            self._answers = {key: one for key, one in self._answers.items() if one.at >= oldest}
