"""Removal of a claim that holds the slot of another city. Pure (management.md 8.6).

Without it one cell keeps the Instances of another from their quota. Only a claim with a name of our
form, for compute resources alone, is removed, if its cell does not serve the city of the deployment
and another cell does; its UID and version are preconditions.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_api_types import reasons
from compute_management_operator.claims.delays import FIRST_READ, LAST_READ
from compute_management_operator.claims.observe import (
    Backing,
    ObservedClaim,
    ProjectClaim,
    derive_backing,
)
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Delete, Plan, RecordEvent, RequeueAfter

ACTION: Final = "RemovingClaim"


def plan(seen: ObservedClaim) -> Plan:
    claim = seen.claim
    if isinstance(claim, Absent) or not is_removable(seen, claim):
        return Plan.of(
            RequeueAfter(seen.key, reasons.QUOTA_MISCONFIGURED, delay_of(seen.idle_reads))
        )
    removal = Delete(
        claim.key,
        claim.uid,
        reasons.MISPLACED_CLAIM_REMOVED,
        resource_version=claim.resource_version,
    )
    about, uid = report_to(seen)
    event = RecordEvent(
        about,
        uid,
        reasons.MISPLACED_CLAIM_REMOVED,
        describe(seen, claim),
        ACTION,
        type="Warning",
        after=removal,
    )
    return Plan.of(
        removal, event, RequeueAfter(seen.key, reasons.MISPLACED_CLAIM_REMOVED, FIRST_READ)
    )


def is_removable(seen: ObservedClaim, claim: ProjectClaim) -> bool:
    if not claim.cell or not claim.is_compute or not seen.is_served:
        return False
    return derive_backing(claim, seen.placed, seen.holder) is Backing.MISPLACED


def delay_of(idle_reads: int) -> timedelta:
    """5 s, doubling to 5 min."""
    return min(LAST_READ, FIRST_READ * (1 << min(idle_reads, 16)))


def report_to(seen: ObservedClaim) -> tuple[ObjectKey, Uid]:
    """The Cluster of the cell; where there is none, the operator's own Deployment."""
    if isinstance(seen.holder, Absent):
        return seen.operator, Uid("")
    return seen.holder.key, seen.holder.uid


def describe(seen: ObservedClaim, claim: ProjectClaim) -> str:
    return (
        f'ResourceClaim "{claim.claim_key}" of project "{seen.project}" named cell "{claim.cell}" '
        f'and took the place of a slot in city "{seen.placed.city_code}", which that cell does not '
        "serve; it was removed"
    )
