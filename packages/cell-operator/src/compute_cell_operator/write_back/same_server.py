"""Whether hub and cell are one API server: then a copy would be the Instance itself.

Told by the UID of the Namespace `kube-system`, which every server has and none shares. Asked once,
before the first write; a settled cell asks nothing.
"""

from __future__ import annotations

import logging
from typing import Final

from compute_cell_operator.kinds import NAMESPACE
from compute_cell_operator.plane_names import CELL, HUB
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.kube import Writer
from compute_operator_kit.objects import Absent, Snapshot, Unreadable
from compute_operator_kit.reach import Reach

SYSTEM: Final = "kube-system"

logger = logging.getLogger(__name__)


class SameServer:
    """The answer, once there is one."""

    def __init__(self, reach: Reach, writer: Writer) -> None:
        self._reach = reach
        self._writer = writer
        self._answer: bool | None = None

    async def is_proven(self) -> bool:
        """Errors of the hub go through: without an answer nothing is written."""
        if self._answer is None:
            cell = self._reach.caches.view(CELL, NAMESPACE).get("", SYSTEM)
            kube = self._reach.kube(HUB, self._writer)
            hub = await kube.get(ObjectKey(HUB, NAMESPACE, "", SYSTEM))
            self._answer = _is_same(cell, hub)
            if self._answer:
                logger.warning("Leaving write-back off: hub and cell are the same API server")
        return self._answer


def _is_same(cell: Snapshot | Absent | Unreadable, hub: Snapshot | Absent) -> bool:
    if not isinstance(cell, Snapshot) or not isinstance(hub, Snapshot):
        return False
    return cell.metadata.uid == hub.metadata.uid
