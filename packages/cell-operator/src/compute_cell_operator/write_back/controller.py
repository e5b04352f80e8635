"""The write-back controller: its watches, caches, reconcile and sweep, for `wiring`.

It has half of the workers at most: reconciles that wait for a hub without an answer must leave
workers for the cell's own controllers.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from compute_api_types import labels, reasons
from compute_cell_operator.delays import RESYNC
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.first_passes import FirstPasses
from compute_cell_operator.indexes import keys_of_kind
from compute_cell_operator.planes import DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_cell_operator.retries import RETRY
from compute_cell_operator.write_back import watches
from compute_cell_operator.write_back.delays import CHECK_PERIOD, SWEEP_JITTER
from compute_cell_operator.write_back.orphans import OrphanedCopies
from compute_cell_operator.write_back.reconcile import WriteBackReconciler
from compute_cell_operator.write_back.status_lag import End, StatusLag
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import FieldOwner, Selector
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, DroppedChange, Watch
from compute_operator_kit.core.errors import RejectedError
from compute_operator_kit.core.keys import ObjectKey, Role, Uid
from compute_operator_kit.intents.intents import RecordEvent
from compute_operator_kit.intents.outcomes import Applied
from compute_operator_kit.planes.engaged_plane import CachedKind

NAME: Final = "write-back"
WRITER: Final = FieldOwner(NAME, labels.WRITE_BACK_MANAGER)
WRITING_BACK: Final = "WritingBack"
NOT_OURS: Final = DroppedChange("not_ours")


class WriteBack:
    """Write-back of all Instances of the cell."""

    def __init__(self, deps: Dependencies, passes: FirstPasses | None = None) -> None:
        self._deps = deps
        self._passes = passes or FirstPasses((NAME,))
        self._orphans = OrphanedCopies(deps, WRITER)
        self._reconciler = WriteBackReconciler(deps, self._orphans, WRITER)
        self._lag = StatusLag(deps.clock, deps.metrics, NAME)

    # --- mapping and reconcile ------------------------------------------------------------------

    def map_instance(self, change: Change, _: Caches) -> Iterable[ObjectKey | DroppedChange]:
        if not self._is_in_scope(change.key):
            return (NOT_OURS,)
        self._orphans.note(change)
        self._lag.start(change.key)
        return (change.key,)

    def _is_in_scope(self, key: ObjectKey) -> bool:
        return self._deps.settings.is_in_scope(key.namespace)

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        if not self._is_in_scope(key):
            return Result()
        self._lag.begin(key)
        end = End.NOT_YET  # also after an error: the change still waits
        try:
            applied, end = await self._reconciler.reconcile(key, work)
        finally:
            self._lag.end(key, end)
        if end is not End.NOT_YET or _is_rejected(applied):
            self._passes.note(NAME, key)
        is_refused = len(applied.errors) > len(applied.failures)
        return Result(applied.wait, applied.failures, is_refused=is_refused)

    # --- leader ---------------------------------------------------------------------------------

    async def run_as_leader(self) -> None:
        """Sweeps, and reports a hub that has been away for long."""
        clock = self._deps.clock
        next_sweep = clock.monotonic()
        self._lag.count(is_on=True)
        # Changes that the former leader did not write wait from now on. Keys that were reconciled
        # before this line are enqueued again, or their wait would have no end.
        for key in keys_of_kind(self._deps.context.caches, INSTANCE):
            self._lag.start(key)
            self._deps.context.enqueue(NAME, key)
        try:
            while True:
                if clock.monotonic() >= next_sweep:
                    self._enqueue_orphans()
                    next_sweep = clock.monotonic() + self._derive_interval()
                self._report_delay()
                await clock.sleep(CHECK_PERIOD)
        finally:
            self._lag.count(is_on=False)

    def _derive_interval(self) -> timedelta:
        chance = 2.0 * self._deps.random.random() - 1.0
        return self._deps.settings.federation.sweep_interval * (1.0 + SWEEP_JITTER * chance)

    def _enqueue_orphans(self) -> None:
        for key in self._orphans.find_keys():
            self._deps.context.enqueue(NAME, key)

    def _report_delay(self) -> None:
        if not self._lag.is_delayed_anew():
            return
        self._deps.event_recorder.record(
            RecordEvent(
                self._deps.operator,
                Uid(""),
                reasons.WRITE_BACK_DELAYED,
                "Changes of Instances have waited for the hub for more than 5 minutes",
                WRITING_BACK,
                type="Warning",
            )
        )

    def update_gauges(self) -> None:
        self._lag.update_gauges()
        if HUB in self._deps.context.caches.planes(Role.HUB):
            self._orphans.prune()

    # --- setup ----------------------------------------------------------------------------------

    def build(self) -> ControllerSetup:
        settings = self._deps.settings
        controller = Controller(
            name=NAME,
            owner=WRITER,
            watches=(
                Watch(Role.HOME, INSTANCE, self.map_instance),
                Watch(Role.HOME, DEPLOYMENT, watches.map_deployment),
                Watch(Role.HOME, NAMESPACE, watches.map_namespace),
                Watch(Role.HUB, INSTANCE, watches.map_copy),
            ),
            reconcile=self.reconcile,
            fairness_key=lambda key, _: key.namespace,
            resync=RESYNC,
            retry=RETRY,
            deadline=settings.clients.reconcile_timeout,
            workers=max(1, settings.workers.total // 2),
            dropped_metric="compute_cell_dropped_events_total",
        )
        # Copies of other cells are neither cached nor watched.
        ours = Selector.of_labels({labels.CELL: settings.cell.name})
        return ControllerSetup(
            controller=controller,
            cached_kinds=(
                CachedKind(Role.HOME, INSTANCE, indexes=watches.INSTANCE_INDEXES),
                CachedKind(Role.HUB, INSTANCE, selector=ours),
            ),
            update_gauges=self.update_gauges,
            run_as_leader=self.run_as_leader,
        )


def _is_rejected(applied: Applied) -> bool:
    """Whether the hub refuses the copy: a repetition has the same end."""
    return any(isinstance(error, RejectedError) for error in applied.errors)


def build(deps: Dependencies, passes: FirstPasses | None = None) -> ControllerSetup:
    return WriteBack(deps, passes).build()
