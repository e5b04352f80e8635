"""Removes a claim that takes the place of a slot of another city. Pure (management.md 8.6).

Prevents that one cell keeps the Instances of another from their quota. Removed is only a claim of
our name form for compute resources alone, that names a cell which does not serve the city of the
deployment, while another does; its UID and version are preconditions.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_api_types import reasons
from compute_management_operator.claims.observe import (
    Backing,
    Claim,
    Seen,
    judge_backing,
)
from compute_operator_kit.intents import Delete, Emit, Plan, Wait
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.objects import Absent

ACTION: Final = "RemovingClaim"
# A cell looks at a slot that another holds every 15 s (quota.md B5).
FIRST_LOOK: Final = timedelta(seconds=5)
LAST_LOOK: Final = timedelta(minutes=5)  # while looks find nothing to remove


def plan(seen: Seen) -> Plan:
    claim = seen.claim
    if isinstance(claim, Absent) or not is_removable(seen, claim):
        return Plan.of(Wait(seen.key, reasons.QUOTA_MISCONFIGURED, delay_of(seen.idle_looks)))
    removal = Delete(
        claim.key,
        claim.uid,
        reasons.MISPLACED_CLAIM_REMOVED,
        resource_version=claim.resource_version,
    )
    about, uid = report_to(seen)
    event = Emit(
        about,
        uid,
        reasons.MISPLACED_CLAIM_REMOVED,
        describe(seen, claim),
        ACTION,
        type="Warning",
        after=removal,
    )
    return Plan.of(removal, event, Wait(seen.key, reasons.MISPLACED_CLAIM_REMOVED, FIRST_LOOK))


def is_removable(seen: Seen, claim: Claim) -> bool:
    if not claim.cell or not claim.is_compute or not seen.is_served:
        return False
    return judge_backing(claim, seen.placed, seen.holder) is Backing.MISPLACED


def delay_of(idle_looks: int) -> timedelta:
    """5 s, doubling to 5 min."""
    return min(LAST_LOOK, FIRST_LOOK * (1 << min(idle_looks, 16)))


def report_to(seen: Seen) -> tuple[ObjectKey, Uid]:
    """The Cluster of the cell; where there is none, the operator's own Deployment."""
    if isinstance(seen.holder, Absent):
        return seen.operator, Uid("")
    return seen.holder.key, seen.holder.uid


def describe(seen: Seen, claim: Claim) -> str:
    return (
        f'ResourceClaim "{claim.place}" of project "{seen.project}" named cell "{claim.cell}" and '
        f'took the place of a slot in city "{seen.placed.city_code}", which that cell does not '
        "serve; it was removed"
    )
