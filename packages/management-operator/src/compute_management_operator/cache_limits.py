"""Cache budgets per project, and per project and cell on the hub, with their gauge and event.

Without them the objects of one tenant, or the copies of one cell, take the memory that all others
need. The kit counts (`cache/budget.py`) and caches only headers beyond a budget; here are the
budgets, the gauge, and the event on the Project.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Final

from compute_api_types import labels, reasons
from compute_management_operator.planes import PROJECT, ROOT
from compute_management_operator.settings import CachesSettings
from compute_operator_kit.cache.budget import Budget, PlaneUsageMeter, ShareUsageMeter, UsageMeter
from compute_operator_kit.cache.store import CACHE_EXHAUSTED
from compute_operator_kit.client.list_bounds import LIST_TOO_LARGE
from compute_operator_kit.controller.ports import OperatorPorts
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.intents.intents import RecordEvent
from compute_operator_kit.planes.engaged_plane import OVER_BUDGET, EngagedPlane, Plane
from compute_operator_kit.planes.registry import Planes

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
_PROJECT_PREFIX: Final = "project/"
_CELL_PREFIX: Final = "cell/"

logger = logging.getLogger(__name__)


class CacheLimits:
    """The budgets of one process."""

    def __init__(self, settings: CachesSettings, *, is_single: bool) -> None:
        self._of_project = Budget(settings.bytes_per_project, settings.objects_per_project)
        self._of_cell = Budget(settings.bytes_per_cell, settings.objects_per_cell)
        self._is_single = is_single
        self._hub = ShareUsageMeter(self._find_shares)
        self._reported: dict[PlaneName, str] = {}  # reason by plane
        self._reported_owners: frozenset[str] = frozenset()

    def find_meter(self, plane: Plane) -> UsageMeter | None:
        """Each project plane has a budget, and on the hub each project and each cell; in mode
        `single` there is no other project to protect.
        """
        if plane.role is Role.PROJECT and not self._is_single:
            return PlaneUsageMeter(self._of_project)
        return self._hub if plane.role is Role.HUB else None

    def _find_shares(self, metadata: Metadata) -> tuple[tuple[str, Budget], ...]:
        """The project by the label that federation writes, the cell by the label that the admission
        policy of cells checks.
        """
        project = metadata.labels.get(labels.UPSTREAM_CLUSTER_NAME)
        cell = metadata.labels.get(labels.CELL)
        if project is None:
            return () if cell is None else ((_CELL_PREFIX + cell, self._of_cell),)
        owner = (_PROJECT_PREFIX + project, self._of_project)
        return (owner,) if cell is None else (owner, (_CELL_PREFIX + cell, self._of_cell))

    def report(self, planes: Planes, ports: OperatorPorts) -> None:
        """Sets the gauge, and logs each plane once when it becomes limited and once when it is no
        longer; called every few seconds.
        """
        planes.report_limits()
        limits = {one.plane.name: one.limit for one in planes.engaged(Role.PROJECT) if one.limit}
        counted = Counter(limits.values())
        for reason, code in _CODES.items():
            ports.metrics.gauge(LIMITED, counted[reason], plane=Role.PROJECT.value, reason=code)
        self._report_hub(ports.metrics)
        for name in self._reported.keys() - limits.keys():
            del self._reported[name]
            logger.info("Caching all of a plane again", extra={"plane": name})
        for name, reason in limits.items():
            engaged = planes.find(name)
            if engaged is not None and self._reported.get(name) != reason:
                self._report_plane(engaged, reason, ports)

    def _report_plane(self, engaged: EngagedPlane, reason: str, ports: OperatorPorts) -> None:
        plane = engaged.plane
        self._reported[plane.name] = reason
        fields = {"plane": plane.name, "reason": reason}
        logger.warning("Caching less than all of a plane", extra=fields)
        if not ports.leadership.is_leading:
            return
        budget = self._of_project
        message = _MESSAGES[reason].format(bytes=budget.bytes, objects=budget.objects)
        ports.event_recorder.record(
            RecordEvent(
                key=ObjectKey(ROOT, PROJECT, "", plane.name),
                uid=Uid(plane.uid),
                reason=reasons.CACHE_BUDGET_EXCEEDED,
                message=message,
                action="Cache",
                type="Warning",
            )
        )

    def _report_hub(self, measures: MetricsPort) -> None:
        over = frozenset(self._hub.over())
        for owner in sorted(over - self._reported_owners):
            logger.warning("Caching less than all of a share of the hub", extra={"share": owner})
        self._reported_owners = over
        for prefix, code in (
            (_PROJECT_PREFIX, "project_over_budget"),
            (_CELL_PREFIX, "cell_over_budget"),
        ):
            count = sum(owner.startswith(prefix) for owner in over)
            measures.gauge(LIMITED, count, plane=Role.HUB.value, reason=code)
