"""Removal of a projection without a source. Pure (management.md 8.4).

A live read of the hub must show that the source is gone, the project namespace must have the UID in
the name of the hub namespace, and the object must be a projection: a wrong deletion hides a running
Instance. Sources that a list lacks without a deletion event count for the mass-delete guard.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import reasons
from compute_management_operator.hub.identity import IdentityMatch, ProjectNamespace, match_identity
from compute_management_operator.hub.mass_delete import hold_removal
from compute_management_operator.hub.projection.observe import HubInstance, ObservedInstance
from compute_management_operator.planes import DEPLOYMENT
from compute_operator_kit.controller.mass_delete import RemovalHeld
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.intents.intents import Delete, Plan, RequireGone

ACTION: Final = "RemovingProjections"
SEEM_ORPHANED: Final = "projected Instances of a project have no source on the hub"


def remove(seen: ObservedInstance) -> Plan:
    existing = seen.projection
    if (
        seen.project_namespace is None
        or not isinstance(existing, HubInstance)
        or existing.metadata.is_deleting
    ):
        # No projection, or no project to read: its engagement enqueues every Instance.
        return Plan()
    if seen.namespace_uid != seen.hub_uid or not is_projection(
        existing.metadata, seen.project_namespace
    ):
        # In a namespace that was recreated under its name, or an Instance of a user.
        return Plan()
    if isinstance(seen.ruling, RemovalHeld):
        held = hold_removal(seen.key, seen.ruling, seen.operator, ACTION, SEEM_ORPHANED)
        return Plan(tuple(held))
    key, uid = existing.key, existing.metadata.uid
    return Plan.of(Delete(key, uid, reasons.NOT_WANTED, require_gone=RequireGone(seen.key)))


def is_projection(existing: Metadata, place: ProjectNamespace) -> bool:
    """Both identity labels name its own project and namespace, or its only owner is a
    deployment.
    """
    if match_identity(existing, place) is IdentityMatch.OURS:
        return True
    owners = existing.owners
    return len(owners) == 1 and owners[0].kind == DEPLOYMENT.kind and not owners[0].controller
