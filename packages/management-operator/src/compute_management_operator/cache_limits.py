"""What one project, and one cell on the hub, may occupy in caches, and who is told when it does.

Without it the objects of one tenant, or the copies of one cell, take the memory that all others
need. The kit counts (`budget.py`) and keeps headers alone beyond the budget; here are the shares,
the gauge, and the event on the Project.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Final

from compute_api_types import labels, reasons
from compute_management_operator.kinds import PROJECT
from compute_management_operator.plane_names import ROOT
from compute_management_operator.settings import CachesSettings
from compute_operator_kit.budget import Budget, Meter, PlaneMeter, ShareMeter
from compute_operator_kit.cache import CACHE_EXHAUSTED
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.list_bounds import LIST_TOO_LARGE
from compute_operator_kit.measures import Measures
from compute_operator_kit.objects import Metadata
from compute_operator_kit.planes import OVER_BUDGET, Engaged, Plane, Planes
from compute_operator_kit.ports import Ports

LIMITED: Final = "compute_caches_limited"
_CODES: Final[Mapping[str, str]] = {
    OVER_BUDGET: "over_budget",
    CACHE_EXHAUSTED: "cache_exhausted",
    LIST_TOO_LARGE: "list_too_large",
}
_MESSAGES: Final[Mapping[str, str]] = {
    OVER_BUDGET: (
        "The compute objects of this project exceed {bytes} bytes or {objects} objects: changes to"
        " them take effect more slowly. Delete Workloads, or make their templates smaller"
    ),
    CACHE_EXHAUSTED: (
        "The compute objects of this project exceed four times {bytes} bytes or {objects} objects:"
        " changes to them have no effect. What runs goes on running. Delete Workloads"
    ),
    LIST_TOO_LARGE: (
        "The control plane of this project answers lists that do not end: changes to its compute"
        " objects have no effect. What runs goes on running"
    ),
}
_PROJECT_SHARE: Final = "project/"
_CELL_SHARE: Final = "cell/"

logger = logging.getLogger(__name__)


class CacheLimits:
    """The budgets of one process."""

    def __init__(self, settings: CachesSettings, *, is_single: bool) -> None:
        self._of_project = Budget(settings.bytes_per_project, settings.objects_per_project)
        self._of_cell = Budget(settings.bytes_per_cell, settings.objects_per_cell)
        self._is_single = is_single
        self._hub = ShareMeter(self._find_shares)
        self._told: dict[PlaneName, str] = {}
        self._told_shares: frozenset[str] = frozenset()

    def find_meter(self, plane: Plane) -> Meter | None:
        """Project planes each have a budget; on the hub, each project and each cell. Where there
        is one project alone, it harms no other.
        """
        if plane.role is Role.PROJECT and not self._is_single:
            return PlaneMeter(self._of_project)
        return self._hub if plane.role is Role.HUB else None

    def _find_shares(self, metadata: Metadata) -> tuple[tuple[str, Budget], ...]:
        """A project by the label that we write, a cell by the one its admission policy checks."""
        project = metadata.labels.get(labels.UPSTREAM_CLUSTER_NAME)
        cell = metadata.labels.get(labels.CELL)
        if project is None:
            return () if cell is None else ((_CELL_SHARE + cell, self._of_cell),)
        share = (_PROJECT_SHARE + project, self._of_project)
        return (share,) if cell is None else (share, (_CELL_SHARE + cell, self._of_cell))

    # telling -------------------------------------------------------------------------------------

    def report(self, planes: Planes, ports: Ports) -> None:
        """Sets the gauge, and tells of every plane once when it becomes limited, and when it is
        not any more; called every few seconds.
        """
        planes.report_limits()
        limits = {one.plane.name: one.limit for one in planes.engaged(Role.PROJECT) if one.limit}
        counted = Counter(limits.values())
        for reason, code in _CODES.items():
            ports.measures.gauge(LIMITED, counted[reason], plane=Role.PROJECT.value, reason=code)
        self._report_hub(ports.measures)
        for name in self._told.keys() - limits.keys():
            del self._told[name]
            logger.info("Caching all of a plane again", extra={"plane": name})
        for name, reason in limits.items():
            engaged = planes.find(name)
            if engaged is not None and self._told.get(name) != reason:
                self._tell(engaged, reason, ports)

    def _tell(self, engaged: Engaged, reason: str, ports: Ports) -> None:
        plane = engaged.plane
        self._told[plane.name] = reason
        told = {"plane": plane.name, "reason": reason}
        logger.warning("Caching less than all of a plane", extra=told)
        if not ports.leadership.is_leading:
            return
        budget = self._of_project
        message = _MESSAGES[reason].format(bytes=budget.bytes, objects=budget.objects)
        ports.recorder.record(
            Emit(
                key=ObjectKey(ROOT, PROJECT, "", plane.name),
                uid=Uid(plane.uid),
                reason=reasons.CACHE_BUDGET_EXCEEDED,
                message=message,
                action="Cache",
                type="Warning",
            )
        )

    def _report_hub(self, measures: Measures) -> None:
        over = frozenset(self._hub.over())
        for share in sorted(over - self._told_shares):
            logger.warning("Caching less than all of a share of the hub", extra={"share": share})
        self._told_shares = over
        for prefix, code in (
            (_PROJECT_SHARE, "project_over_budget"),
            (_CELL_SHARE, "cell_over_budget"),
        ):
            count = sum(share.startswith(prefix) for share in over)
            measures.gauge(LIMITED, count, plane=Role.HUB.value, reason=code)
