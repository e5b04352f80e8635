"""The discovery controller, assembled: a watch on Projects, and changes of the plane registry.

It writes to no plane, so it runs without the Lease.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Final, TypeAlias, assert_never

from compute_management_operator.dependencies import Dependencies
from compute_management_operator.discovery.delays import ENGAGE_LATE_AFTER
from compute_management_operator.discovery.observe import (
    PROJECT_INDEXES,
    observe,
    ready_projects,
)
from compute_management_operator.discovery.plan import Decision, Disengage, Engage, Leave, plan
from compute_management_operator.discovery.progress import EngageProgress
from compute_management_operator.discovery.resume import ResumeListener
from compute_management_operator.planes import PROJECT, ROOT, SINGLE
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.planes.engaged_plane import CachedKind, Plane

NAME: Final = "discovery"
WRITER: Final = FieldOwner(NAME, "compute-discovery")

# The plane of a project, by its name and the uid of its Project.
DescribePlane: TypeAlias = Callable[[str, str], Plane]


class Discovery:
    """Applies decisions to the registry of planes."""

    def __init__(
        self, context: OperatorContext, progress: EngageProgress, describe: DescribePlane
    ) -> None:
        self._context = context
        self._progress = progress
        self._describe = describe

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        with work.spans.step("observe"):
            seen = observe(key, work.caches, self._find_engaged)
        if seen is None:
            return Result()
        with work.spans.step("plan"):
            decision = plan(seen)
        with work.spans.step("apply"):
            return await self._apply(decision, PlaneName(key.name))

    async def _apply(self, decision: Decision, plane: PlaneName) -> Result:
        match decision:
            case Engage(name=name, uid=uid):
                self._progress.begin(plane)
                # Tasks of the plane must not inherit the log fields and the span of this reconcile.
                Context().run(self._context.planes.engage, self._describe(name, uid))
                return Result(ENGAGE_LATE_AFTER)
            case Disengage():
                await self._context.planes.disengage(plane)
                return Result(ZERO)  # the next reconcile engages a new project of the same name
            case Leave():
                return Result(self._progress.check(plane))
            case _:
                assert_never(decision)

    def _find_engaged(self, plane: PlaneName) -> str | None:
        engaged = self._context.planes.find(plane)
        return None if engaged is None else engaged.plane.uid


def build(deps: Dependencies, describe: DescribePlane) -> ControllerSetup:
    progress = EngageProgress(
        deps.context,
        deps.clock,
        deps.metrics,
        lambda: ready_projects(ROOT, deps.context.caches),
    )
    discovery = Discovery(deps.context, progress, describe)
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(Watch(Role.ROOT, PROJECT),),
        reconcile=discovery.reconcile,
        fairness_key=_fairness_by_name,
        deadline=deps.settings.clients.reconcile_timeout,
    )
    return ControllerSetup(
        controller=controller,
        cached_kinds=(CachedKind(Role.ROOT, PROJECT, indexes=PROJECT_INDEXES),),
        listeners=(progress, ResumeListener(deps.context)),
        update_gauges=progress.update_gauges,
    )


def build_single(deps: Dependencies) -> ControllerSetup:
    """Mode `single`: the only project is configured, and no Projects are watched."""
    progress = EngageProgress(deps.context, deps.clock, deps.metrics, lambda: frozenset({SINGLE}))
    progress.begin(SINGLE)
    return ControllerSetup(listeners=(progress,), update_gauges=progress.update_gauges)


def _fairness_by_name(key: ObjectKey, _: object) -> str:
    """Every project takes turns with every other: engaging one never waits for another."""
    return key.name
