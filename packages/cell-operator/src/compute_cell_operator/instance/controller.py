"""The instance controller, assembled: what wakes it, what it reads, its steps, what it counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels
from compute_cell_operator.assembly import Tools
from compute_cell_operator.instance import mapping
from compute_cell_operator.instance.measures import QuotaMeasures
from compute_cell_operator.instance.observe import Seen, Surroundings, observe
from compute_cell_operator.instance.plan import plan
from compute_cell_operator.kinds import INSTANCE, NAMESPACE, NETWORK_BINDING
from compute_cell_operator.network.caches import WATCHED as NETWORKING_WATCHED
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.findings import Granted
from compute_cell_operator.quota_gate.port import Gate, NoGate
from compute_cell_operator.retries import RETRY
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.controller import Controller, Dropped, Watch
from compute_operator_kit.intents import Plan, Wait
from compute_operator_kit.keys import ObjectKey, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.parts import Part
from compute_operator_kit.planes import Watched
from compute_operator_kit.reconcile import Pass, Result, run_steps

NAME: Final = "instance"
WRITER: Final = Writer(NAME, labels.INSTANCE_MANAGER)
RESYNC: Final = timedelta(minutes=10)  # cell.md 2
ENFORCED: Final = "compute_quota_enforcement_enabled"
NOT_OURS: Final = Dropped("not_ours")


@dataclass(slots=True)
class InstanceSteps:
    """One pass: the files of the folder as the kit calls them, and what they gave."""

    around: Surroundings
    seen: Seen | None = None

    def observe(self, key: ObjectKey, caches: Caches) -> Seen | None:
        self.seen = observe(key, caches, self.around)
        return self.seen

    def plan(self, seen: Seen, now: datetime) -> Plan:
        return plan(seen, now)

    def report(self, seen: Seen, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return Plan()  # its status is what a gate waits for, so the plan has it in its place


class Instances:
    """Passes over Instances, and what is kept between them."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._gate: Gate = NoGate()
        self._quota = QuotaMeasures(tools.measures)
        self._next_look: dict[ObjectKey, timedelta] = {}
        tools.networking.tell(self._wake_all)

    def bind(self, gate: Gate) -> None:
        """Whose findings count; once, before anything runs."""
        self._gate = gate

    def told(self, key: ObjectKey) -> None:
        """The quota worker has found out something about this Instance."""
        finding = self._gate.finding(key)
        if finding is not None and isinstance(finding.said, Granted):
            self._quota.note_grant(key, self._tools.clock.monotonic())
        self._tools.reach.wake(NAME, key)

    # --- waking ---------------------------------------------------------------------------------

    def map_instance(self, change: Change, _: Caches) -> Iterable[ObjectKey | Dropped]:
        is_ours = self._tools.settings.is_in_scope(change.key.namespace)
        return (change.key if is_ours else NOT_OURS,)

    def _wake_all(self) -> None:
        for key in mapping.wake_all(self._tools.reach.caches):
            self._tools.reach.wake(NAME, key)

    # --- a pass ---------------------------------------------------------------------------------

    async def reconcile(self, key: ObjectKey, work: Pass) -> Result:
        if not self._tools.settings.is_in_scope(key.namespace):
            return Result()
        around = Surroundings(
            gate=self._gate,
            is_quota_enforced=self._tools.settings.is_quota_enforced,
            networking=self._tools.networking.state,
        )
        steps = InstanceSteps(around)
        result = await run_steps(steps, key, work)
        if steps.seen is None:
            self._forget(key)
        else:
            self._note(steps.seen, work.session.so_far)
        return result

    def _note(self, seen: Seen, applied: Applied) -> None:
        clock = self._tools.clock
        self._quota.count(seen, applied, clock.now(), clock.monotonic())
        waits = (found.intent for found in applied.outcomes if isinstance(found.intent, Wait))
        self._schedule(seen, next(waits, None), clock.monotonic())

    def _schedule(self, seen: Seen, wait: Wait | None, now: timedelta) -> None:
        """Has the claim looked at when its time has come, whatever else woke this pass meanwhile.

        The first time comes a whole wait after the Instance was seen: its appearance has woken the
        worker already.
        """
        due = self._next_look.get(seen.key)
        if wait is None or seen.metadata.is_deleting:
            self._next_look.pop(seen.key, None)
        elif due is None or now >= due:
            self._next_look[seen.key] = now + wait.retry_after
            if due is not None:
                self._gate.look(seen.key)
        else:  # a shorter wait than the one that was begun counts at once
            self._next_look[seen.key] = min(due, now + wait.retry_after)

    def _forget(self, key: ObjectKey) -> None:
        self._next_look.pop(key, None)
        self._quota.forget(key)

    def report(self) -> None:
        """Gauges, from caches."""
        is_enforced = self._tools.settings.is_quota_enforced
        self._tools.measures.gauge(ENFORCED, float(is_enforced))
        if CELL in self._tools.reach.caches.planes(Role.HOME):
            self._quota.report(self._tools.reach.caches)

    # --- assembling -----------------------------------------------------------------------------

    def build(self) -> Part:
        is_consulted = self._tools.networking.is_consulted
        # Not needed: a network that cannot be read is no evidence, and quota is told without it.
        bindings = Watch(Role.HOME, NETWORK_BINDING, mapping.map_binding, is_needed=False)
        controller = Controller(
            name=NAME,
            writer=WRITER,
            watches=(
                Watch(Role.HOME, INSTANCE, self.map_instance),
                Watch(Role.HOME, NAMESPACE, mapping.map_namespace),
                *((bindings,) if is_consulted else ()),
            ),
            reconcile=self.reconcile,
            share=lambda key, _: key.namespace,
            resync=RESYNC,
            retry=RETRY,
            deadline=self._tools.settings.clients.reconcile_timeout,
            dropped_metric="compute_cell_dropped_events_total",
        )
        return Part(
            controller=controller,
            watched=(*WATCHED, *(NETWORKING_WATCHED if is_consulted else ())),
            report=self.report,
        )


WATCHED: Final = (
    Watched(Role.HOME, INSTANCE, indexes=mapping.INDEXES),
    Watched(Role.HOME, NAMESPACE),
)
