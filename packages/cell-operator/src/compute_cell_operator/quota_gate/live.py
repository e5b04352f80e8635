"""Asks the cell itself, past all caches: what a claim is made, handed on or released upon.

An answer that does not come is raised as the kit's error, and nothing is concluded from it.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.found import Lookup
from compute_cell_operator.quota_gate.occupancy import (
    derive_deployment_key,
    is_namespace_deleting,
    is_wanted,
    read_desired,
)
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.kube import Writer
from compute_operator_kit.objects import Absent
from compute_operator_kit.reach import Reach

READER: Final = Writer("instance", labels.QUOTA_MANAGER)


class LiveCell:
    """The cell, read now."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def look_up(self, instance: ObjectKey) -> Lookup:
        """Who bears this name."""
        found = await self._reach.kube(CELL, READER).get(instance)
        return Lookup(None if isinstance(found, Absent) else found.metadata.uid)

    async def is_standing(self, instance: ObjectKey, uid: Uid) -> bool:
        """Whether this very Instance exists and is not going."""
        found = await self._reach.kube(CELL, READER).get(instance)
        if isinstance(found, Absent):
            return False
        return found.metadata.uid == uid and not found.metadata.is_deleting

    async def is_slot_wanted(self, instance: ObjectKey) -> bool:
        owner = derive_deployment_key(instance)
        if owner is None:
            return False
        found = await self._reach.kube(CELL, READER).get(owner)
        is_going = is_namespace_deleting(instance, self._reach.caches)
        return is_wanted(instance, read_desired(found, is_namespace_deleting=is_going))
