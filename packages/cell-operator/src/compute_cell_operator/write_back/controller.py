"""The write-back controller, assembled: what wakes it, what it reads, and what runs beside its
passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from compute_api_types import labels, reasons
from compute_cell_operator.assembly import Tools
from compute_cell_operator.instance.mapping import wake_all
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.plane_names import HUB
from compute_cell_operator.retries import RETRY
from compute_cell_operator.write_back import mapping
from compute_cell_operator.write_back.lag import End, Lag
from compute_cell_operator.write_back.leftovers import Copies
from compute_cell_operator.write_back.passes import Passes
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.controller import Controller, Dropped, Watch
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import ObjectKey, Role, Uid
from compute_operator_kit.kube import Selector, Writer
from compute_operator_kit.parts import Part
from compute_operator_kit.planes import Watched
from compute_operator_kit.reconcile import Pass, Result

NAME: Final = "write-back"
WRITER: Final = Writer(NAME, labels.WRITE_BACK_MANAGER)
RESYNC: Final = timedelta(minutes=10)  # cell.md 2
TICK: Final = timedelta(seconds=5)
SWEEP_JITTER: Final = 0.1  # cell.md 12: ± 10 %
WRITING_BACK: Final = "WritingBack"
NOT_OURS: Final = Dropped("not_ours")


class WriteBack:
    """Everything that copies Instances to the hub."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._copies = Copies(tools, WRITER)
        self._passes = Passes(tools, self._copies, WRITER)
        self._lag = Lag(tools.clock, tools.measures, NAME)

    # --- waking and looking ---------------------------------------------------------------------

    def map_instance(self, change: Change, _: Caches) -> Iterable[ObjectKey | Dropped]:
        if not self._is_in_scope(change.key):
            return (NOT_OURS,)
        self._copies.note(change)
        self._lag.start(change.key)
        return (change.key,)

    def _is_in_scope(self, key: ObjectKey) -> bool:
        return self._tools.settings.is_in_scope(key.namespace)

    async def reconcile(self, key: ObjectKey, work: Pass) -> Result:
        if not self._is_in_scope(key):
            return Result()
        self._lag.begin(key)
        end = End.NOT_YET  # also when it ends by an error: the change still waits
        try:
            applied, end = await self._passes.look(key, work)
        finally:
            self._lag.end(key, end)
        is_refused = len(applied.errors) > len(applied.failures)
        return Result(applied.wait, applied.failures, is_refused=is_refused)

    # --- beside the passes ----------------------------------------------------------------------

    async def attend(self) -> None:
        """While this process writes: sweeps, and says when the hub has been away for long."""
        clock = self._tools.clock
        next_sweep = clock.monotonic()
        self._lag.count(is_on=True)
        # What the process before this one has not brought to the hub waits for us from now on. A
        # pass may have been quicker than we are here, so each is looked at once more.
        for key in wake_all(self._tools.reach.caches):
            self._lag.start(key)
            self._tools.reach.wake(NAME, key)
        try:
            while True:
                if clock.monotonic() >= next_sweep:
                    self._sweep()
                    next_sweep = clock.monotonic() + self._derive_interval()
                self._tell_delay()
                await clock.sleep(TICK)
        finally:
            self._lag.count(is_on=False)

    def _derive_interval(self) -> timedelta:
        chance = 2.0 * self._tools.random.random() - 1.0
        return self._tools.settings.federation.sweep_interval * (1.0 + SWEEP_JITTER * chance)

    def _sweep(self) -> None:
        for key in self._copies.find_keys():
            self._tools.reach.wake(NAME, key)

    def _tell_delay(self) -> None:
        if not self._lag.is_delayed_anew():
            return
        self._tools.recorder.record(
            Emit(
                self._tools.operator,
                Uid(""),
                reasons.WRITE_BACK_DELAYED,
                "Changes of Instances have waited for the hub for more than 5 minutes",
                WRITING_BACK,
                type="Warning",
            )
        )

    def report(self) -> None:
        """Gauges; and nothing is remembered that nobody will ask for."""
        self._lag.report()
        if HUB in self._tools.reach.caches.planes(Role.HUB):
            self._copies.prune()

    # --- assembling -----------------------------------------------------------------------------

    def build(self) -> Part:
        settings = self._tools.settings
        controller = Controller(
            name=NAME,
            writer=WRITER,
            watches=(
                Watch(Role.HOME, INSTANCE, self.map_instance),
                Watch(Role.HOME, DEPLOYMENT, mapping.map_deployment),
                Watch(Role.HOME, NAMESPACE, mapping.map_namespace),
                Watch(Role.HUB, INSTANCE, mapping.map_copy),
            ),
            reconcile=self.reconcile,
            share=lambda key, _: key.namespace,
            resync=RESYNC,
            retry=RETRY,
            deadline=settings.clients.reconcile_timeout,
            # A hub that hangs must leave workers for the cell: the far plane never blocks the near.
            workers=max(1, settings.workers.total // 2),
            dropped_metric="compute_cell_dropped_events_total",
        )
        # Of the hub only what is this cell's own.
        ours = Selector.of_labels({labels.CELL: settings.cell.name})
        return Part(
            controller=controller,
            watched=(
                Watched(Role.HOME, INSTANCE, indexes=mapping.INSTANCE_INDEXES),
                Watched(Role.HOME, DEPLOYMENT),
                Watched(Role.HOME, NAMESPACE),
                Watched(Role.HUB, INSTANCE, selector=ours),
            ),
            report=self.report,
            attend=self.attend,
        )


def build(tools: Tools) -> Part:
    return WriteBack(tools).build()
