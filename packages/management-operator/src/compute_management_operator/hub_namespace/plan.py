"""Whether an empty hub namespace is deleted now. Pure (management.md 4, Reclaim).

Two live reads some time apart must both show that the source is gone, and the delete repeats the
read: a plane that answers empty for a moment, as after a restore, removes nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_api_types import reasons
from compute_management_operator.hub_namespace.observe import Observed, SourceState
from compute_operator_kit.intents import Delete, IfGone, Plan, Wait
from compute_operator_kit.mass_delete import APART

# A namespace that terminates takes seconds; its end wakes nothing here, since namespaces of
# projects are not watched.
TERMINATING_AGAIN: Final = timedelta(seconds=5)
# Between the two reads; where many are gone at once, as long as every mass deletion waits.
FEW_APART: Final = timedelta(seconds=20)


def plan(observed: Observed) -> Plan:
    key = observed.namespace.key
    if observed.state is SourceState.TERMINATING:
        return Plan.of(Wait(key, reasons.STILL_TERMINATING, TERMINATING_AGAIN))
    if observed.gone_for is None:
        # Live, or not known: looked at again when its contents change, or at the resync.
        return Plan()
    apart = APART if observed.are_many else FEW_APART
    if observed.gone_for < apart:
        return Plan.of(Wait(key, reasons.ORPHANED, apart - observed.gone_for))
    namespace = observed.namespace
    gone = IfGone(namespace.source, namespace.source_uid)
    return Plan.of(Delete(key, namespace.uid, reasons.ORPHANED, if_gone=gone))
