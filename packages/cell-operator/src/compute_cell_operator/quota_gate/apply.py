"""The one place that writes claims: carries out what `plan.py` has decided (quota.md B3, B6).

Before each create, adoption and replacement the cell is asked, live, whether that very Instance
still stands there: a dead one never takes the claim from the living. A claim whose owner lost it is
made again only while its slot is wanted. What became of a step is a value; errors of the quota
plane go through to who can tell what they mean for the Instance.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final, assert_never

from compute_cell_operator.quota_gate.claim import read_subject
from compute_cell_operator.quota_gate.ledger import Record
from compute_cell_operator.quota_gate.live import LiveCell
from compute_cell_operator.quota_gate.occupancy import Subject
from compute_cell_operator.quota_gate.plan import (
    AdoptClaim,
    ClaimStep,
    Postpone,
    Recreated,
    ReleaseClaim,
    RequestClaim,
)
from compute_operator_kit.clock import Clock
from compute_operator_kit.measures import Measures
from compute_quota_client import (
    Absent,
    Claim,
    Foreign,
    FoundClaim,
    Mismatch,
    NotOurs,
    ProjectQuota,
    Verdict,
    judge,
)

RECREATED: Final = "compute_quota_claims_recreated_total"
ADOPTED: Final = "compute_quota_claims_adopted_total"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Moved:
    """The world is not as the plan assumed; whoever changed it wakes the slot."""


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing more to do now."""


@dataclass(frozen=True, slots=True)
class Work:
    """One slot whose claim is worked on."""

    record: Record
    subject: Subject
    project: ProjectQuota
    wanted: Claim
    is_known_absent: bool = False  # a synced watch shows no claim of the name


class Applier:
    """Carries out steps."""

    def __init__(self, cell: LiveCell, clock: Clock, measures: Measures) -> None:
        self._cell = cell
        self._clock = clock
        self._measures = measures

    async def apply(
        self, steps: tuple[ClaimStep, ...], found: FoundClaim | None, work: Work
    ) -> Verdict | Absent | Moved | Later:
        """Carries out the steps in their order, each only if the former succeeded.

        Raises:
            QuotaError: the quota plane refused a step, or did not answer.
            ReconcileError: the cell could not be asked.
        """
        result: Verdict | Absent | Moved | Later = Later()
        for step in steps:
            result = await self._apply(step, steps, found, work)
            if isinstance(result, Moved):
                return result
        return result

    async def _apply(
        self,
        step: ClaimStep,
        steps: tuple[ClaimStep, ...],
        found: FoundClaim | None,
        work: Work,
    ) -> Verdict | Absent | Moved | Later:
        match step:
            case RequestClaim():
                return await self._request(step, work)
            case AdoptClaim() if found is not None:
                return await self._adopt(found, work)
            case AdoptClaim():
                return Moved()
            case ReleaseClaim(claim_uid=uid):
                is_replaced = any(isinstance(one, RequestClaim) for one in steps)
                return await self._release(uid, work, is_replaced=is_replaced)
            case Postpone():
                work.record.postpone(step, work.subject.requests, self._clock.now())
                return Later()
            case _:
                assert_never(step)

    async def _request(self, step: RequestClaim, work: Work) -> Verdict | Moved:
        if not await self._is_standing(work):
            return Moved()
        is_lost = step.recreated is Recreated.LOST
        if is_lost and not await self._cell.is_slot_wanted(work.record.key):
            # A project that is purged takes claims first and deployments next: nothing is put back
            # into it.
            return Moved()
        logger.info("Requesting claim", extra=_keys(work))
        verdict = await work.project.claim(work.wanted, known_absent=work.is_known_absent)
        if not isinstance(verdict, Foreign | Mismatch):
            work.record.note_request()
            if step.recreated is not None:
                self._measures.count(RECREATED, reason=step.recreated.value)
        return verdict

    async def _adopt(self, found: FoundClaim, work: Work) -> Verdict | Absent | Moved:
        if not await self._is_standing(work):
            return Moved()
        logger.info("Adopting claim", extra=_keys(work))
        verdict = await work.project.adopt(
            work.wanted.namespace,
            work.wanted.name,
            owner=work.wanted.owner,
            old_subject=read_subject(found),
            new_subject=work.wanted.subject,
        )
        if isinstance(verdict, Absent):
            return verdict
        if verdict.found.carries(work.wanted.subject):
            self._measures.count(ADOPTED)
        # Who asked compares the rest: the library looks at owner and subject only.
        return judge(verdict.found, work.wanted)

    async def _release(self, uid: str, work: Work, *, is_replaced: bool) -> Absent | Moved | Later:
        if is_replaced and not await self._is_standing(work):
            return Moved()
        logger.info("Releasing claim", extra=_keys(work))
        place = work.wanted
        released = await work.project.release(place.namespace, place.name, uid=uid)
        if isinstance(released, NotOurs):
            return Moved()
        work.record.note_release(uid)
        return Later()

    async def _is_standing(self, work: Work) -> bool:
        return await self._cell.is_standing(work.record.key, work.subject.occupant.uid)


def _keys(work: Work) -> dict[str, str]:
    """For a log line: which slot."""
    return {"Instance": f"{work.record.key.namespace}/{work.record.key.name}"}
