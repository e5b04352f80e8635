"""The mirror controller: its watches, cached kinds and steps."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from compute_operator_kit.cache.lister import Caches
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.backoff import RetryPolicy
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.intents.intents import Plan
from compute_operator_kit.intents.outcomes import Applied
from compute_operator_kit.planes.engaged_plane import CachedKind
from example_operator.mirror import observe, status, watches
from example_operator.mirror.observe import ObservedNote
from example_operator.mirror.plan import plan
from example_operator.notes import NOTE, WRITER

CACHED_KINDS: Final = (
    CachedKind(Role.PROJECT, NOTE),
    CachedKind(Role.HUB, NOTE, indexes={"plane": watches.index_by_plane}),
)


class MirrorReconciler:
    """The steps of one reconcile."""

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedNote | None:
        return observe.observe(key, caches)

    def plan(self, observed: ObservedNote, now: datetime) -> Plan:  # noqa: ARG002 - no time here
        return plan(observed)

    def report(self, observed: ObservedNote, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return status.report(observed, applied)


async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
    return await run_steps(MirrorReconciler(), key, work)


def build(resync: timedelta, retry: RetryPolicy) -> Controller:
    return Controller(
        name=WRITER.controller,
        owner=WRITER,
        watches=(
            Watch(Role.PROJECT, NOTE),
            Watch(Role.HUB, NOTE, watches.map_copy),
        ),
        reconcile=reconcile,
        keys_on_engage=watches.enqueue_copies,
        resync=resync,
        retry=retry,
        dropped_metric="compute_federation_dropped_events_total",
    )
