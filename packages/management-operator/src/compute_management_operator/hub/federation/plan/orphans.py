"""Orphaned copies on the hub, of deployments with a stripped finalizer. Pure
(management.md 4, Orphan).

A copy is deleted only if three facts are proven: this operator wrote it, its hub namespace belongs
to this project namespace, and a live read of the project shows no deployment. Any other is left and
counted, since a wrong deletion would stop a running workload.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels, reasons
from compute_management_operator.hub.delays import UNTIL_RESYNC
from compute_management_operator.hub.federation.observe import ObservedDeployment, ProjectDeployment
from compute_management_operator.hub.federation.plan.events import ACTION
from compute_management_operator.hub.identity import IdentityMatch, match_identity
from compute_management_operator.hub.mass_delete import hold_removal
from compute_operator_kit.controller.mass_delete import RemovalHeld
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Delete, Plan, RequeueAfter, RequireGone

SEEM_ORPHANED: Final = "deployments of a project are on the hub and not in the project"


def plan_orphans(seen: ObservedDeployment) -> Plan:
    if seen.live.hub_namespace is None:
        # Deleted after the live reads, which did not cover it; its event enqueues it.
        return Plan()
    left = RequeueAfter(seen.key, reasons.ORPHANED, UNTIL_RESYNC)
    if isinstance(seen.copy, Absent):
        # A copy in another hub namespace that names this deployment cannot be proven ours.
        return Plan.of(left) if seen.strays else Plan()
    if seen.copy.metadata.is_deleting:
        return Plan()
    if not is_proven(seen, seen.copy):
        return Plan.of(left)
    ruling = seen.live.ruling
    if isinstance(ruling, RemovalHeld):
        # Too many at once: a project that was restored empty looks the same.
        operator = seen.known.operator
        return Plan((left, *hold_removal(seen.key, ruling, operator, ACTION, SEEM_ORPHANED)))
    gone = RequireGone(seen.key)
    copy = seen.copy
    return Plan.of(Delete(copy.key, copy.metadata.uid, reasons.ORPHANED, require_gone=gone))


def is_proven(seen: ObservedDeployment, copy: ProjectDeployment) -> bool:
    """Whether the copy is ours to delete; `hub_name` is derived from the live read of the UID."""
    if isinstance(seen.hub_namespace, Absent) or not isinstance(seen.live.namespace, str):
        return False
    is_labelled = match_identity(seen.hub_namespace, seen.project_namespace) is IdentityMatch.OURS
    return is_labelled and labels.PROJECT_GENERATION in copy.metadata.annotations
