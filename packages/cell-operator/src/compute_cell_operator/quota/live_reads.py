"""Live reads of the cell for quota: requests to its API server, past all caches.

A claim is created, adopted or released only on such an answer, because a stale cache would take the
claim of a live Instance. A failed read raises the kit's error, and nothing is concluded from it.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_cell_operator.planes import CELL
from compute_cell_operator.quota.observe import (
    derive_deployment_key,
    is_namespace_deleting,
    is_wanted,
    read_desired,
)
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent

OWNER: Final = FieldOwner("quota", labels.QUOTA_MANAGER)


class QuotaLiveReads:
    """The cell's API server."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    async def read_uid(self, instance: ObjectKey) -> Uid | Absent:
        """The UID of the Instance with this name."""
        existing = await self._context.kube(CELL, OWNER).get(instance)
        return existing if isinstance(existing, Absent) else existing.metadata.uid

    async def is_live(self, instance: ObjectKey, uid: Uid) -> bool:
        """Whether the Instance exists with this UID and is not terminating."""
        existing = await self._context.kube(CELL, OWNER).get(instance)
        if isinstance(existing, Absent):
            return False
        return existing.metadata.uid == uid and not existing.metadata.is_deleting

    async def is_slot_wanted(self, instance: ObjectKey) -> bool:
        owner = derive_deployment_key(instance)
        if owner is None:
            return False
        deployment = await self._context.kube(CELL, OWNER).get(owner)
        is_deleting = is_namespace_deleting(instance, self._context.caches)
        return is_wanted(instance, read_desired(deployment, is_namespace_deleting=is_deleting))
