"""The two events of the quota worker (cell.md 14). Pure."""

from __future__ import annotations

from typing import Final

from compute_api_types import reasons
from compute_cell_operator.kinds import DEPLOYMENT
from compute_cell_operator.quota_gate.occupancy import Subject
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import ObjectKey, Uid

CLAIMING: Final = "ClaimingQuota"
RELEASING: Final = "ReleasingQuota"


def tell_lost(key: ObjectKey, subject: Subject) -> Emit:
    related, related_uid = _refer_to_deployment(key, subject)
    return Emit(
        key,
        subject.occupant.uid,
        reasons.QUOTA_CLAIM_LOST,
        "The quota claim of this running instance is gone; it is made again",
        CLAIMING,
        type="Warning",
        related=related,
        related_uid=related_uid,
    )


def _refer_to_deployment(key: ObjectKey, subject: Subject) -> tuple[ObjectKey | None, Uid | None]:
    owner = subject.owner
    if owner is None or owner.kind != DEPLOYMENT.kind or not owner.name:
        return None, None
    return ObjectKey(key.plane, DEPLOYMENT, key.namespace, owner.name), owner.uid


def tell_orphaned(key: ObjectKey, uid: Uid) -> Emit:
    return Emit(
        key,
        uid,
        reasons.QUOTA_CLAIM_ORPHANED,
        "The quota claim of this instance cannot be released: its project cannot be determined",
        RELEASING,
        type="Warning",
    )
