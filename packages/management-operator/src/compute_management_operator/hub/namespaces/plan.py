"""Whether an empty hub namespace is deleted now. Pure (management.md 4, Reclaim).

Two live reads some time apart must both show that the source is gone, and the delete repeats the
read: a plane that answers empty for a moment, as after a restore, removes nothing.
"""

from __future__ import annotations

from compute_api_types import reasons
from compute_management_operator.hub.delays import BETWEEN_TWO_READS, NAMESPACE_TERMINATING
from compute_management_operator.hub.namespaces.observe import ObservedNamespace, SourceState
from compute_operator_kit.controller.mass_delete import APART
from compute_operator_kit.intents.intents import Delete, Plan, RequeueAfter, RequireGone


def plan(observed: ObservedNamespace) -> Plan:
    key = observed.namespace.key
    if observed.state is SourceState.TERMINATING:
        return Plan.of(RequeueAfter(key, reasons.STILL_TERMINATING, NAMESPACE_TERMINATING))
    if observed.gone_for is None:
        # Live, or unknown: reconciled again when its contents change, or at the resync.
        return Plan()
    apart = APART if observed.are_many else BETWEEN_TWO_READS
    if observed.gone_for < apart:
        return Plan.of(RequeueAfter(key, reasons.ORPHANED, apart - observed.gone_for))
    namespace = observed.namespace
    gone = RequireGone(namespace.source, namespace.source_uid)
    return Plan.of(Delete(key, namespace.uid, reasons.ORPHANED, require_gone=gone))
