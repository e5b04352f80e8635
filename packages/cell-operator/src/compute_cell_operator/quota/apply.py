"""The only writer of ResourceClaims: rounds of observe, plan and apply for a slot (quota.md B3).

```
verdict (watch, else a read) ─► ClaimState ─► steps ─┐
     ▲                                               │ at most `ROUNDS` times; the rest is left to
     └───────────────────────────────────────────────┘ the next reconcile
```

A watch may lag behind our own writes. A claim that it shows is left alone, and one that it lacks is
created, since a create reads first; a claim is released or adopted only after a read. Before each
create, adopt and replace the Instance is read live on the cell, so that a deleted Instance never
takes the claim of its successor. A lost claim is made again only while its slot is wanted. Errors
of the quota client are raised to the controller, which derives the Instance's state from them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never

from compute_api_types import names, reasons
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.planes import DEPLOYMENT, INSTANCE
from compute_cell_operator.quota.claim import read_subject, read_subject_values
from compute_cell_operator.quota.live_reads import QuotaLiveReads
from compute_cell_operator.quota.observe import InstanceFacts, derive_holder, observe_claim
from compute_cell_operator.quota.plan import (
    AdoptClaim,
    ClaimStep,
    Postpone,
    Recreated,
    ReleaseClaim,
    RequestClaim,
    plan_claim,
)
from compute_cell_operator.quota.project_client import ProjectClient
from compute_cell_operator.quota.project_ref import BillingProject, ClaimRef, derive_claim_ref
from compute_cell_operator.quota.result import (
    ClaimDenied,
    ClaimHolder,
    ClaimInvalid,
    ClaimState,
    NoResult,
)
from compute_cell_operator.quota.state import SlotState
from compute_operator_kit.core import objects
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.intents.intents import RecordEvent
from compute_quota_client import (
    Absent,
    Claim,
    Foreign,
    FoundClaim,
    Mismatch,
    NotOurs,
    Pending,
    QuotaError,
    QuotaProjectSuspendedError,
    Verdict,
    judge,
)

ROUNDS: Final = 5  # release, request and adopt each lead to one more; a race to another
RECREATED: Final = "compute_quota_claims_recreated_total"
ADOPTED: Final = "compute_quota_claims_adopted_total"
CLAIMING: Final = "ClaimingQuota"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ended:
    """No verdict to go on with: the last step needs none, or an object changed since the plan; the
    event of that change enqueues the slot.
    """


@dataclass(frozen=True, slots=True)
class ClaimWork:
    """One slot with an Instance, and the claim that is desired for it."""

    slot: SlotState
    instance: InstanceFacts
    billing: BillingProject
    project: ProjectClient
    desired: Claim

    @property
    def ref(self) -> ClaimRef:
        return derive_claim_ref(self.billing, self.instance.ref.name)

    def keep_denial(self, state: ClaimState) -> ClaimState:
        return self.slot.keep_denial(self.instance, state)


@dataclass(frozen=True, slots=True)
class Observation:
    """A claim and its state, compared with the desired claim."""

    claim: FoundClaim | None
    state: ClaimState


class ClaimApplier:
    """Brings claims to their desired state; `publish` enqueues the Instance for a new result."""

    def __init__(
        self, deps: Dependencies, live_reads: QuotaLiveReads, publish: Callable[[ObjectKey], None]
    ) -> None:
        self._deps = deps
        self._live_reads = live_reads
        self._publish = publish

    async def reconcile(self, work: ClaimWork) -> ClaimState:
        """Applies steps until none is left; the last state that was observed.

        Raises:
            QuotaError: the project refused a step, or did not answer.
            ReconcileError: the cell could not be read.
        """
        verdict, is_watched = await self._read_first(work)
        for _ in range(ROUNDS):
            observed = await self._observe(verdict, work)
            steps = self._plan(observed, work)
            if not steps:
                return _keep_while_waiting(observed.state, work)
            if is_watched and not _is_mere_request(steps):
                # A watch may lag behind our own writes: a claim is given up only after a read.
                verdict, is_watched = await self._read(work), False
                continue
            self._announce(observed.state, steps, work)
            applied = await self._apply(steps, observed, work)
            if isinstance(applied, Ended):
                return _keep_while_waiting(observed.state, work)
            verdict, is_watched = applied, False
            work.slot.note_verdict(verdict, self._deps.clock.now())
        return NoResult()

    async def release_refused(self, work: ClaimWork) -> None:
        """For a terminating Instance no claim is requested; what a refused claim reserves in part
        is given back where the watch shows it.
        """
        verdict = work.project.watched(work.ref)
        work.project.unfollow(work.slot.key)
        if verdict is None or work.project.outage is not None:
            return
        observed = await self._observe(verdict, work)
        steps = self._plan(observed, work)
        if not steps:
            return
        try:
            await self._apply(steps, observed, work)
        except QuotaError as error:
            # The slot's release deletes it, or the next Instance in the slot meets it.
            logger.debug("Keeping claim", extra={"reason": type(error).__name__})

    # observe and plan ----------------------------------------------------------------------------

    async def _read_first(self, work: ClaimWork) -> tuple[Verdict | Absent, bool]:
        """The first verdict, and whether it is the watch's."""
        slot, now = work.slot, self._deps.clock.now()
        verdict = work.project.watched(work.ref)
        if verdict is not None and slot.is_unconfirmed(verdict, now):
            return await self._read(work), False
        if verdict is not None and not _is_released(verdict, slot):
            slot.note_verdict(verdict, now)
            return verdict, True
        is_new = slot.verdict is None and slot.postponed is None
        if is_new and not work.instance.is_started and not work.instance.is_terminating:
            return Absent(), True  # no claim was ever seen, and a create reads first
        return await self._read(work), False

    async def _read(self, work: ClaimWork) -> Verdict | Absent:
        verdict = await work.project.quota.read(work.ref.namespace, work.ref.name)
        work.slot.note_verdict(verdict, self._deps.clock.now(), is_read=True)
        return verdict

    async def _observe(self, verdict: Verdict | Absent, work: ClaimWork) -> Observation:
        if isinstance(verdict, Absent):
            return Observation(None, observe_claim(verdict, ClaimHolder.SELF))
        claim = verdict.found
        compared = judge(claim, work.desired)
        holder = ClaimHolder.SELF
        if isinstance(compared, Mismatch):
            holder = await self._read_holder(claim, work)
        return Observation(claim, observe_claim(compared, holder))

    async def _read_holder(self, claim: FoundClaim, work: ClaimWork) -> ClaimHolder:
        """The Instance that the claim records; one in another namespace is read live."""
        subject, key = read_subject(claim), work.slot.key
        if not names.is_dns_label(subject.namespace):
            return ClaimHolder.NONE
        live_uid: Uid | objects.Absent | None = None
        if subject.uid and subject.namespace != key.namespace:
            recorded = ObjectKey(key.plane, INSTANCE, subject.namespace, key.name)
            live_uid = await self._live_reads.read_uid(recorded)
        return derive_holder(subject, work.instance.ref, live_uid)

    def _plan(self, observed: Observation, work: ClaimWork) -> tuple[ClaimStep, ...]:
        claim_uid = observed.claim.uid if observed.claim is not None else ""
        slot = work.slot.describe(work.instance, claim_uid)
        return plan_claim(observed.state, slot, self._deps.clock.now())

    def _announce(self, state: ClaimState, steps: tuple[ClaimStep, ...], work: ClaimWork) -> None:
        """Publishes a denial before its claim is released, should that fail, and records the event
        of a lost claim.
        """
        if isinstance(state, ClaimDenied | ClaimInvalid):
            work.slot.set_result(work.instance, state)
            self._publish(work.slot.key)
        for step in steps:
            if isinstance(step, Postpone) and step.until is not None:
                self._deps.event_recorder.record(_lost_event(work.slot.key, work.instance))

    # apply ---------------------------------------------------------------------------------------

    async def _apply(
        self, steps: tuple[ClaimStep, ...], observed: Observation, work: ClaimWork
    ) -> Verdict | Absent | Ended:
        """Carries out the steps in their order, each only if the former succeeded."""
        is_replaced = any(isinstance(step, RequestClaim) for step in steps)
        applied: Verdict | Absent | Ended = Ended()
        for step in steps:
            match step:
                case RequestClaim():
                    is_absent = _is_known_absent(observed, steps, work)
                    applied = await self._request(step, work, is_known_absent=is_absent)
                case AdoptClaim():
                    applied = await self._adopt(observed.claim, work)
                case ReleaseClaim(claim_uid=uid):
                    if not await self._release(uid, work, is_replaced=is_replaced):
                        return Ended()
                case Postpone():
                    work.slot.postpone(step, work.instance.requests, self._deps.clock.now())
                case _:
                    assert_never(step)
        return applied

    async def _request(
        self, step: RequestClaim, work: ClaimWork, *, is_known_absent: bool
    ) -> Verdict | Ended:
        if not await self._is_live(work):
            return Ended()
        is_lost = step.recreated is Recreated.LOST
        if is_lost and not await self._live_reads.is_slot_wanted(work.slot.key):
            # A purge of a project deletes claims first and deployments next: no claim is put back.
            return Ended()
        _check_suspension(work)
        logger.info("Requesting claim", extra=_log_keys(work))
        verdict = await work.project.quota.claim(work.desired, known_absent=is_known_absent)
        if isinstance(verdict, Pending):  # made now: a claim that existed shows no resume
            work.project.suspension.accept()
        if not isinstance(verdict, Foreign | Mismatch):
            work.slot.note_request()
            if step.recreated is not None:
                self._deps.metrics.count(RECREATED, reason=step.recreated.value)
        return verdict

    async def _adopt(self, claim: FoundClaim | None, work: ClaimWork) -> Verdict | Absent | Ended:
        if claim is None or not await self._is_live(work):
            return Ended()
        _check_suspension(work)
        logger.info("Adopting claim", extra=_log_keys(work))
        verdict = await work.project.quota.adopt(
            work.desired.namespace,
            work.desired.name,
            owner=work.desired.owner,
            old_subject=read_subject_values(claim),
            new_subject=work.desired.subject,
        )
        if isinstance(verdict, Absent):
            return verdict
        if verdict.found.carries(work.desired.subject):
            work.project.suspension.accept()
            self._deps.metrics.count(ADOPTED)
        # The library compares owner and subject only.
        return judge(verdict.found, work.desired)

    async def _release(self, uid: str, work: ClaimWork, *, is_replaced: bool) -> bool:
        """Whether the claim is gone; False where it or the Instance changed since the plan."""
        if is_replaced and not await self._is_live(work):
            return False
        logger.info("Releasing claim", extra=_log_keys(work))
        desired = work.desired
        released = await work.project.quota.release(desired.namespace, desired.name, uid=uid)
        if isinstance(released, NotOurs):
            return False
        work.slot.note_release(uid)
        return True

    async def _is_live(self, work: ClaimWork) -> bool:
        return await self._live_reads.is_live(work.slot.key, work.instance.uid)


def _check_suspension(work: ClaimWork) -> None:
    """Raises as the project would: only a probe is sent while it is suspended."""
    if not work.project.suspension.take_permit():
        message = f"claiming quota in project {work.project.name!r}: the project is suspended"
        raise QuotaProjectSuspendedError(message, project=work.project.name)


def _keep_while_waiting(state: ClaimState, work: ClaimWork) -> ClaimState:
    """The denial, while its next attempt is waited for."""
    postponed = work.slot.postponed
    is_denied = postponed is not None and postponed.because is Recreated.DENIED
    return work.keep_denial(state) if is_denied else state


def _is_released(verdict: Verdict | Absent, slot: SlotState) -> bool:
    return not isinstance(verdict, Absent) and verdict.found.uid in slot.released


def _is_mere_request(steps: tuple[ClaimStep, ...]) -> bool:
    """A create happens only where no claim exists, so a watch that lags does no harm."""
    return len(steps) == 1 and isinstance(steps[0], RequestClaim)


def _is_known_absent(observed: Observation, steps: tuple[ClaimStep, ...], work: ClaimWork) -> bool:
    """Whether a claim may be created without another read: a synced watch has none of the name.

    Not after the first result: another cell's claim of the name is outside the watch, and each
    further reconcile must read and never create (quota.md B5).
    """
    is_first = work.slot.result is None and _is_mere_request(steps)
    return is_first and observed.claim is None and work.project.is_watched


def _log_keys(work: ClaimWork) -> dict[str, str]:
    return {"Instance": f"{work.slot.key.namespace}/{work.slot.key.name}"}


def _lost_event(key: ObjectKey, instance: InstanceFacts) -> RecordEvent:
    related, related_uid = _refer_to_deployment(key, instance)
    return RecordEvent(
        key,
        instance.uid,
        reasons.QUOTA_CLAIM_LOST,
        "The quota claim of this running instance is gone; it is made again",
        CLAIMING,
        type="Warning",
        related=related,
        related_uid=related_uid,
    )


def _refer_to_deployment(
    key: ObjectKey, instance: InstanceFacts
) -> tuple[ObjectKey | None, Uid | None]:
    owner = instance.owner
    if owner is None or owner.kind != DEPLOYMENT.kind or not owner.name:
        return None, None
    return ObjectKey(key.plane, DEPLOYMENT, key.namespace, owner.name), owner.uid
