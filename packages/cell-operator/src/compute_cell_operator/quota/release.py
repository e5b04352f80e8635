"""Reconcile of a slot without an Instance: its claim is kept for a wanted slot, else released.

```
read claim ─► ours? ─► Instance gone, live? ─► slot not wanted, live? ─► release the claim as read
```

In this order, because the proofs must be newer than the claim that is released on them: after an
adoption in between the claim has another subject, and the release leaves it alone. Released is a
claim that the collector listed as an orphan, or the claim of an Instance that a watch event
deleted; an inferred deletion is left to the collector. With any other answer, or none, the claim is
kept (cell.md 12, quota.md B6).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from compute_api_types import reasons
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.quota.claim import (
    derive_owner,
    find_other_resource,
    read_subject_values,
)
from compute_cell_operator.quota.live_reads import QuotaLiveReads
from compute_cell_operator.quota.observe import EmptySlot
from compute_cell_operator.quota.project_client import ProjectClient, ProjectClients
from compute_cell_operator.quota.project_ref import BillingProject, ClaimRef, derive_claim_ref
from compute_cell_operator.quota.retry import RETRY_REFUSED
from compute_cell_operator.quota.state import SlotState, SlotTable
from compute_operator_kit.controller.reconcile import Result
from compute_operator_kit.core import objects
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.intents.intents import RecordEvent
from compute_quota_client import (
    Absent,
    FoundClaim,
    NotOurs,
    QuotaError,
    QuotaUnavailableError,
    QuotaUsageError,
    Released,
)

ORPHANED: Final = "compute_quota_claim_orphaned_total"
SWEPT: Final = "compute_sweep_deletions_total"
SWEPT_KIND: Final = "ResourceClaim"
RELEASING: Final = "ReleasingQuota"

logger = logging.getLogger(__name__)


class SlotRelease:
    """Reconciles slots without an Instance; `collect` has the orphans of a project listed."""

    def __init__(
        self,
        deps: Dependencies,
        slots: SlotTable,
        projects: ProjectClients,
        live_reads: QuotaLiveReads,
        collect: Callable[[str], None],
    ) -> None:
        self._deps = deps
        self._slots = slots
        self._projects = projects
        self._live_reads = live_reads
        self._collect = collect

    async def reconcile(self, key: ObjectKey, observed: EmptySlot) -> Result:
        slot = self._slots.open(key)
        slot.vacate()
        self._projects.unfollow(key, slot.claim)
        if observed.is_wanted:
            # Between two Instances: the next one adopts the claim.
            return Result()
        claim = _find_claim(slot, observed)
        if claim is None:
            self._give_up(slot)
            return Result()
        self._slots.set_claim(slot, claim)
        if not slot.was_seen_deleted and not slot.is_orphaned:
            # That the Instance is gone is inferred, and a cell restored empty looks the same. The
            # collector counts all such claims together, and has the mass-delete guard.
            self._collect(claim.project)
            return Result()
        return await self._release(slot, claim)

    def _give_up(self, slot: SlotState) -> None:
        """The project of the slot is unknown for good; without a claim that is no loss."""
        self._slots.forget(slot.key)
        if slot.had_claim:
            self._deps.metrics.count(ORPHANED)
            self._deps.event_recorder.record(_orphaned_event(slot.key, slot.uid))

    async def _release(self, slot: SlotState, claim: ClaimRef) -> Result:
        project = self._projects.get(claim.project)
        if project.outage is not None:
            self._projects.await_answer(project, claim, project.outage, slot.key)
            return Result()
        try:
            is_done = await self._try_release(slot, claim, project)
        except QuotaUnavailableError as error:
            self._projects.await_answer(project, claim, error, slot.key)
            return Result()
        except QuotaUsageError:
            is_done = True  # a claim of that name cannot exist
        except QuotaError as error:
            reason = type(error).__name__
            logger.warning("Keeping claim", extra={"reason": reason, "error": str(error)})
            return Result(RETRY_REFUSED)
        if is_done:
            self._slots.forget(slot.key)
        else:
            slot.is_orphaned = False  # an Instance or a deployment came since it was listed
        return Result()

    async def _try_release(self, slot: SlotState, ref: ClaimRef, project: ProjectClient) -> bool:
        """Whether no claim is left to release; otherwise a later event enqueues the slot."""
        verdict = await project.quota.read(ref.namespace, ref.name)
        if isinstance(verdict, Absent) or not self._is_ours(verdict.found):
            return True
        if not await self._is_abandoned(slot.key):
            return False
        return await self._delete(slot, verdict.found, project)

    def _is_ours(self, claim: FoundClaim) -> bool:
        is_compute = find_other_resource(claim) is None
        return is_compute and claim.carries(derive_owner(self._deps.settings.cell.name))

    async def _is_abandoned(self, key: ObjectKey) -> bool:
        """By live reads: no Instance of that name with any UID, and the slot is not wanted."""
        uid = await self._live_reads.read_uid(key)
        is_gone = isinstance(uid, objects.Absent)
        return is_gone and not await self._live_reads.is_slot_wanted(key)

    async def _delete(self, slot: SlotState, claim: FoundClaim, project: ProjectClient) -> bool:
        key = slot.key
        logger.info("Releasing claim", extra={"Instance": f"{key.namespace}/{key.name}"})
        released = await release_claim(project, claim, self._deps.settings.cell.name)
        if isinstance(released, NotOurs):
            self._slots.check(key)
            return False
        slot.note_release(claim.uid)
        if slot.is_orphaned and isinstance(released, Released):
            self._deps.metrics.count(SWEPT, kind=SWEPT_KIND)
        return True


def _find_claim(slot: SlotState, observed: EmptySlot) -> ClaimRef | None:
    """Where the claim of a slot is: as remembered, by the Namespace, or by its former labels."""
    if slot.claim is not None:
        return slot.claim
    billing = observed.billing if isinstance(observed.billing, BillingProject) else slot.billing
    return derive_claim_ref(billing, slot.key.name) if billing is not None else None


async def release_claim(
    project: ProjectClient, claim: FoundClaim, cell: str
) -> Released | Absent | NotOurs:
    """Releases a claim by owner and by the subject it was read with: an adoption since then keeps
    the UID and changes the subject. A claim without a subject is released by its UID.
    """
    values = read_subject_values(claim).items()
    subject = {key: value for key, value in values if value is not None}
    if not subject:
        return await project.quota.release(claim.namespace, claim.name, uid=claim.uid)
    return await project.quota.release(
        claim.namespace, claim.name, owner=derive_owner(cell), subject=subject
    )


def _orphaned_event(key: ObjectKey, uid: Uid) -> RecordEvent:
    return RecordEvent(
        key,
        uid,
        reasons.QUOTA_CLAIM_ORPHANED,
        "The quota claim of this instance cannot be released: its project cannot be determined",
        RELEASING,
        type="Warning",
    )
