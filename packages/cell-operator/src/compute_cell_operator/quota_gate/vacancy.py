"""One look at a slot without an Instance: its claim stays while the slot is wanted, else it is
released, once (cell.md 12, quota.md B6).

```
claim read ─► ours? ─► Instance gone, live? ─► slot not wanted, live? ─► release what was read
```

Only for a slot whose Instance was seen to go, or that a sweep has found; an inference is handed to
the sweep. In this order: what was proven must be newer than the claim that is released on it. An
adoption in between makes the claim somebody else's, and the release leaves it alone. Anything else,
an answer that does not come too, ends the look and the claim stays.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from compute_api_types import labels
from compute_cell_operator.quota_gate.claim import derive_owner, find_other_resource
from compute_cell_operator.quota_gate.events import tell_orphaned
from compute_cell_operator.quota_gate.evidence import Payer
from compute_cell_operator.quota_gate.ledger import Ledger, Record
from compute_cell_operator.quota_gate.live import LiveCell
from compute_cell_operator.quota_gate.occupancy import Vacant
from compute_cell_operator.quota_gate.place import Place, derive_place
from compute_cell_operator.quota_gate.projects import Project
from compute_cell_operator.quota_gate.surroundings import Around
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.reconcile import Result
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
REFUSED_AGAIN: Final = timedelta(minutes=5)  # cell.md 13: refused for good

logger = logging.getLogger(__name__)


class Vacancies:
    """Looks at slots without an Instance."""

    def __init__(self, around: Around, ledger: Ledger, cell: LiveCell) -> None:
        self._around = around
        self._ledger = ledger
        self._cell = cell

    async def look(self, key: ObjectKey, seen: Vacant) -> Result:
        record = self._ledger.open(key)
        record.leave()
        self._around.stop_following(record)
        if seen.is_wanted:
            # Between two Instances: the next one takes the claim over.
            return Result()
        place = self._find_place(record, seen)
        if place is None:
            self._give_up(record)
            return Result()
        if not record.is_seen_going and not record.is_swept:
            # Nobody saw the Instance go: that it is gone is an inference, and a plane that lost
            # everything looks the same. A sweep judges them together, and has a guard.
            self._ledger.place(record, place)
            self._around.ask_sweep(place.project)
            return Result()
        return await self._release(record, place)

    def _find_place(self, record: Record, seen: Vacant) -> Place | None:
        """Where its claim is: as it was seen, or by the Namespace, or by what the Namespace said
        before it went.
        """
        if record.place is not None:
            return record.place
        payer = seen.payer if isinstance(seen.payer, Payer) else record.payer
        return derive_place(payer, record.key.name) if payer is not None else None

    def _give_up(self, record: Record) -> None:
        """Whose quota it was cannot be told, now or later; without a claim that is nothing."""
        self._ledger.forget(record.key)
        if record.had_claim:
            self._around.measures.count(ORPHANED)
            self._around.recorder.record(tell_orphaned(record.key, record.uid))

    async def _release(self, record: Record, place: Place) -> Result:
        project = self._around.projects.get(place.project)
        self._ledger.place(record, place)
        if project.away is not None:
            self._around.put_aside(project, record, project.away)
            return Result()
        try:
            is_done = await self._try(record, place, project)
        except QuotaUnavailableError as error:
            self._around.put_aside(project, record, error)
            return Result()
        except QuotaUsageError:
            is_done = True  # a claim of that name cannot exist
        except QuotaError as error:
            reason = type(error).__name__
            logger.warning("Keeping claim", extra={"reason": reason, "error": str(error)})
            return Result(REFUSED_AGAIN)
        if is_done:
            self._ledger.forget(record.key)
        else:
            record.is_swept = False  # the world has moved on since the sweep
        return Result()

    async def _try(self, record: Record, place: Place, project: Project) -> bool:
        """Whether there is nothing left to release; otherwise whoever changes that wakes us."""
        verdict = await project.quota.read(place.namespace, place.name)
        if isinstance(verdict, Absent) or not self._is_ours(verdict.found):
            return True
        if not await self._is_left_behind(record.key):
            return False
        return await self._delete(record, verdict.found, project)

    def _is_ours(self, found: FoundClaim) -> bool:
        is_compute = find_other_resource(found) is None
        return is_compute and found.carries(derive_owner(self._around.cell))

    async def _is_left_behind(self, key: ObjectKey) -> bool:
        """By live reads: no Instance of that name whatever its UID, and nobody wants the slot."""
        looked_up = await self._cell.look_up(key)
        return looked_up.uid is None and not await self._cell.is_slot_wanted(key)

    async def _delete(self, record: Record, found: FoundClaim, project: Project) -> bool:
        key = record.key
        logger.info("Releasing claim", extra={"Instance": f"{key.namespace}/{key.name}"})
        released = await release_claim(project, found, self._around.cell)
        if isinstance(released, NotOurs):
            self._around.wake(key)
            return False
        record.note_release(found.uid)
        if record.is_swept and isinstance(released, Released):
            self._around.measures.count(SWEPT, kind=SWEPT_KIND)
        return True


async def release_claim(
    project: Project, found: FoundClaim, cell: str
) -> Released | Absent | NotOurs:
    """Releases a claim by owner and by the subject it was read with.

    An adoption since then keeps the UID, so that a subject is the better mark; a claim that
    records none has only its UID.
    """
    keys = (labels.INSTANCE_NAMESPACE, labels.INSTANCE_UID)
    recorded = {key: found.value_of(key) for key in keys}
    subject = {key: value for key, value in recorded.items() if value is not None}
    if not subject:
        return await project.quota.release(found.namespace, found.name, uid=found.uid)
    return await project.quota.release(
        found.namespace, found.name, owner=derive_owner(cell), subject=subject
    )
