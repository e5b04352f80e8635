"""Detection of a hub and a cell on one API server, where a copy would be the Instance itself.

Compares the UID of the Namespace `kube-system`, which every server has and no two share. Read once,
before the first write: a settled cell sends no request.
"""

from __future__ import annotations

import logging
from typing import Final

from compute_cell_operator.planes import CELL, HUB, NAMESPACE
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, Snapshot, Unreadable

SYSTEM: Final = "kube-system"

logger = logging.getLogger(__name__)


class SharedServer:
    """The result of the comparison, once it was made."""

    def __init__(self, context: OperatorContext, writer: FieldOwner) -> None:
        self._context = context
        self._writer = writer
        self._is_shared: bool | None = None

    async def is_proven(self) -> bool:
        """Errors of the hub are raised: without its answer nothing is written."""
        if self._is_shared is None:
            cell = self._context.caches.lister(CELL, NAMESPACE).get("", SYSTEM)
            kube = self._context.kube(HUB, self._writer)
            hub = await kube.get(ObjectKey(HUB, NAMESPACE, "", SYSTEM))
            self._is_shared = _is_same(cell, hub)
            if self._is_shared:
                logger.warning("Leaving write-back off: hub and cell are the same API server")
        return self._is_shared


def _is_same(cell: Snapshot | Absent | Unreadable, hub: Snapshot | Absent) -> bool:
    if not isinstance(cell, Snapshot) or not isinstance(hub, Snapshot):
        return False
    return cell.metadata.uid == hub.metadata.uid
