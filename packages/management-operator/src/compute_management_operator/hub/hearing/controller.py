"""Looks at the hub every few seconds and enqueues what a new verdict on a cell concerns.

Only the leader looks, and it begins without any verdict: what a former leader has shown stays until
this process has heard a cell, or has waited for it as long as the settings say.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from compute_management_operator.dependencies import Dependencies
from compute_management_operator.hub import indexes, metrics
from compute_management_operator.hub.federation.watches import find_deployments_of_cell
from compute_management_operator.hub.hearing.absence import Absences, note_absent
from compute_management_operator.hub.hearing.dark_objects import CellHearing
from compute_management_operator.hub.hearing.judge import (
    CellState,
    Records,
    find_suspects,
    judge,
    note,
    without_times,
)
from compute_management_operator.hub.hearing.observe import HubLooks, find_absent_cells
from compute_management_operator.hub.hearing.verdicts import derive_hearing
from compute_management_operator.planes import DEPLOYMENT, HUB, INSTANCE
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.workqueue import Priority
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.keys import ObjectKey, Role

LOOK_EVERY: Final = timedelta(seconds=5)
FEDERATION: Final = "federation"
PROJECTION: Final = "projection"
DIRECTIONS: Final = ("dark", "heard")

logger = logging.getLogger(__name__)


class HearingLoop:
    """The looks of one process."""

    def __init__(self, deps: Dependencies, hearing: CellHearing) -> None:
        self._deps = deps
        self._hearing = hearing
        self._after = deps.settings.cell_health.unreachable_after
        self._looks = HubLooks(deps.context, deps.clock)
        self._records = Records()
        self._absences = Absences()
        self._aged: frozenset[str] = frozenset()  # cells with a series of their own

    async def run_as_leader(self) -> None:
        self._records, self._absences = Records(), Absences()
        while True:
            await self._run_once()
            await self._deps.clock.sleep(LOOK_EVERY)

    async def _run_once(self) -> None:
        before = self._records
        try:
            self._records = await self._judge()
        except (ReconcileError, TimeoutError):
            # Our own view is broken: verdicts stay, and every count begins anew.
            self._records, self._absences = without_times(before), Absences()
        else:
            absent = find_absent_cells(self._deps.context.caches)
            now = self._deps.clock.monotonic()
            self._absences = note_absent(self._absences, absent, now)
        self._publish(self._records)
        self._count(before, self._records)

    async def _judge(self) -> Records:
        look = await self._looks.look()
        records = note(self._records, look, self._after)
        suspects = find_suspects(records, look, self._after)
        confirmed = {cell for cell in suspects if await self._looks.is_unready(cell)}
        return judge(records, look, self._after, confirmed)

    # --- verdicts -------------------------------------------------------------------------------

    def _publish(self, records: Records) -> None:
        before = self._hearing.current
        gone = self._absences.gone if self._after > ZERO else frozenset[str]()
        after = self._hearing.current = derive_hearing(records, gone)
        if before == after:
            return
        changed = (before.dark ^ after.dark) | (before.gone ^ after.gone)
        for cell in sorted(changed):
            self._enqueue_cell(cell, records)
        if after.heard - before.heard - changed:
            # Heard for the first time by this process: a former one may have shown otherwise.
            self._enqueue(FEDERATION, self._hearing.deployments.keys)
            self._enqueue(PROJECTION, self._hearing.instances.keys)

    def _enqueue_cell(self, cell: str, records: Records) -> None:
        record, caches = records.cells.get(cell), self._deps.context.caches
        if HUB not in caches.planes(Role.HUB):
            return
        city = "" if record is None else record.city_code
        self._enqueue(FEDERATION, find_deployments_of_cell(cell, city, caches))
        instances = caches.lister(HUB, INSTANCE).entries_by_index(indexes.CELL, cell)
        self._enqueue(PROJECTION, (entry.key for entry in instances))

    def _enqueue(self, controller: str, keys: Iterable[ObjectKey]) -> None:
        """Behind the edits of users, which must not wait for the objects of a whole site."""
        for key in keys:
            self._deps.context.enqueue(controller, key, Priority.LOW)

    # --- metrics and logs -----------------------------------------------------------------------

    def _count(self, before: Records, after: Records) -> None:
        for cell, direction in _find_transitions(before, after):
            self._deps.metrics.count(metrics.DARK_TRANSITIONS, cell=cell, direction=direction)
            logger.warning("Judging cell", extra={"Cluster": cell, "state": direction})
        states = Counter(record.state for record in after.cells.values())
        for state in CellState:
            self._deps.metrics.gauge(metrics.CELLS, states[state], state=state.value)
        self._report_ages(after)

    def _report_ages(self, records: Records) -> None:
        now, ages = self._deps.clock.monotonic(), dict.fromkeys(self._aged, ZERO)
        for cell, record in records.cells.items():
            if cell not in self._aged:
                for direction in DIRECTIONS:
                    # A rate over a series that begins with its first event misses that event.
                    self._deps.metrics.count(
                        metrics.DARK_TRANSITIONS, 0, cell=cell, direction=direction
                    )
            ages[cell] = ZERO if record.changed_at is None else now - record.changed_at
        for cell, age in ages.items():
            self._deps.metrics.gauge(metrics.CELL_LEASE_AGE, age.total_seconds(), cell=cell)
        self._aged = frozenset(records.cells)

    def update_gauges(self) -> None:
        for kind, shown in (
            (DEPLOYMENT.kind, self._hearing.deployments),
            (INSTANCE.kind, self._hearing.instances),
        ):
            self._deps.metrics.gauge(metrics.DARK_OBJECTS, len(shown), kind=kind)


def _find_transitions(before: Records, after: Records) -> Iterator[tuple[str, str]]:
    """Verdicts that changed; the first verdict of a process is none, unless it is dark."""
    for cell, record in after.cells.items():
        former = before.cells.get(cell)
        was = None if former is None else former.is_dark
        if record.is_dark and not was:
            yield cell, "dark"
        elif was and record.is_dark is False:
            yield cell, "heard"


def build(deps: Dependencies, hearing: CellHearing) -> ControllerSetup:
    loop = HearingLoop(deps, hearing)
    return ControllerSetup(run_as_leader=loop.run_as_leader, update_gauges=loop.update_gauges)
