"""The heartbeat of the cell: renewals of its Lease on the hub (dark-sites.md 2.1).

A renewal testifies that this cell reaches the hub and that what it has reported is true of now. So
the leader renews only after every Instance had its first pass, and only after a read of the cell's
own API server; else a site with a dead API server would be shown as well for as long as the
operator lives. At rest this is the only write to the hub: one per `federation.heartbeat`.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from enum import StrEnum
from typing import Final

from compute_api_types import labels, names
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.first_passes import FirstPasses
from compute_cell_operator.indexes import keys_of_kind
from compute_cell_operator.planes import CELL, HUB, INSTANCE
from compute_operator_kit.apply.context import Leadership
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.errors import ConflictError, ForbiddenError, ReconcileError
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.process.leader import LEASE

WRITER: Final = FieldOwner("heartbeat", labels.HEARTBEAT_MANAGER)
HEARTBEATS: Final = "compute_cell_heartbeats_total"
DURATION_IN_BEATS: Final = 4  # leaseDurationSeconds: three renewals may be lost
JITTER: Final = 0.1
UNTIL_READY: Final = timedelta(seconds=1)  # between two checks of the first passes
# The hub has no Lease for this cell, or refuses it: only a person can change that.
UNTIL_REPAIRED: Final = timedelta(seconds=60)
LONGEST_REQUEST: Final = timedelta(seconds=5)

logger = logging.getLogger(__name__)


class BeatResult(StrEnum):
    """What became of one renewal: label `result` of the counter."""

    OK = "ok"
    REFUSED = "refused"  # no Lease, or no right to it
    UNAVAILABLE = "unavailable"  # the hub does not answer
    WITHHELD = "withheld"  # the cell's own API server does not answer


class Heartbeat:
    """Renewals by the leader of one cell."""

    def __init__(self, deps: Dependencies, passes: FirstPasses, leadership: Leadership) -> None:
        self._deps = deps
        self._passes = passes
        self._leadership = leadership
        self._interval = deps.settings.federation.heartbeat
        cell = deps.settings.cell.name
        self._key = ObjectKey(HUB, LEASE, names.CELL_LEASES, names.derive_cell_lease(cell))
        self._body: JsonObject | None = None  # the Lease as the hub answered last
        self._is_warned = False
        # A rate over a series that begins with its first event misses that event.
        for result in BeatResult:
            deps.metrics.count(HEARTBEATS, 0, result=result.value)

    async def run_as_leader(self) -> None:
        while not self._is_ready():
            await self._deps.clock.sleep(UNTIL_READY)
        while True:
            result = await self._beat()
            if result is not None:
                self._deps.metrics.count(HEARTBEATS, result=result.value)
            await self._deps.clock.sleep(self._derive_pause(result))

    def _is_ready(self) -> bool:
        """Whether the caches are complete and every Instance had its first pass."""
        engaged = self._deps.context.planes.find(CELL)
        if engaged is None or not engaged.is_synced:
            return False
        settings = self._deps.settings
        keys = keys_of_kind(self._deps.context.caches, INSTANCE)
        return self._passes.check(key for key in keys if settings.is_in_scope(key.namespace))

    def _derive_pause(self, result: BeatResult | None) -> timedelta:
        chance = 2.0 * self._deps.random.random() - 1.0
        pause = UNTIL_REPAIRED if result is BeatResult.REFUSED else self._interval
        return pause * (1.0 + JITTER * chance)

    async def _beat(self) -> BeatResult | None:
        """None: another process may lead now, after a freeze of this one."""
        if not await self._has_answer_of_cell():
            return BeatResult.WITHHELD
        if not self._leadership.is_leading:
            return None
        try:
            async with asyncio.timeout(LONGEST_REQUEST.total_seconds()):
                is_renewed = await self._renew()
        except ForbiddenError:
            is_renewed = False
        except (ReconcileError, TimeoutError):
            self._body = None  # the outcome is not known: the next renewal reads first
            return BeatResult.UNAVAILABLE
        if not is_renewed:
            self._warn()
            return BeatResult.REFUSED
        self._is_warned = False
        return BeatResult.OK

    async def _has_answer_of_cell(self) -> bool:
        try:
            async with asyncio.timeout(LONGEST_REQUEST.total_seconds()):
                await self._deps.context.kube(CELL, WRITER).probe(INSTANCE)
        except (ReconcileError, TimeoutError):
            return False
        return True

    async def _renew(self) -> bool:
        """Whether the Lease is renewed; False where the hub has none for this cell."""
        try:
            return await self._write()
        except ConflictError:
            self._body = None  # another client has changed it: read, and once more
            return await self._write()

    async def _write(self) -> bool:
        leases = self._deps.context.kube(HUB, WRITER)
        if self._body is None:
            existing = await leases.get(self._key)
            self._body = None if isinstance(existing, Absent) else existing.decode()
        if self._body is None:
            return False
        answer = await leases.update(self._key, self._renewed(self._body))
        self._body = None if isinstance(answer, Absent) else answer.decode()
        return self._body is not None

    def _renewed(self, body: JsonObject) -> JsonObject:
        """The Lease with our renewal; its time is for people, and no program compares it."""
        spec = member_object(body, "spec") | {
            "holderIdentity": self._deps.settings.cell.name,
            "leaseDurationSeconds": round(DURATION_IN_BEATS * self._interval.total_seconds()),
            "renewTime": self._deps.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        return {**body, "spec": spec}

    def _warn(self) -> None:
        self._body = None
        if not self._is_warned:
            lease = f"{self._key.namespace}/{self._key.name}"
            logger.warning(
                "No heartbeat: the hub has no Lease for this cell", extra={"Lease": lease}
            )
        self._is_warned = True


def build(deps: Dependencies, passes: FirstPasses, leadership: Leadership) -> ControllerSetup:
    if deps.settings.federation.heartbeat <= ZERO:
        return ControllerSetup()
    return ControllerSetup(run_as_leader=Heartbeat(deps, passes, leadership).run_as_leader)
