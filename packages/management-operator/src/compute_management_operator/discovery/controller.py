"""The discovery controller, assembled. It writes to no plane, so it needs no Lease."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Final, TypeAlias, assert_never

from compute_management_operator.assembly import Tools
from compute_management_operator.discovery.engaging import LATE_AFTER, Engaging
from compute_management_operator.discovery.observe import (
    PROJECT_INDEXES,
    observe,
    ready_projects,
)
from compute_management_operator.discovery.plan import Decision, Disengage, Engage, Leave, plan
from compute_management_operator.kinds import PROJECT
from compute_management_operator.plane_names import ROOT, SINGLE
from compute_operator_kit.clock import ZERO
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.parts import Part
from compute_operator_kit.planes import Plane, Watched
from compute_operator_kit.reach import Reach
from compute_operator_kit.reconcile import Pass, Result

NAME: Final = "discovery"
WRITER: Final = Writer(NAME, "compute-discovery")

# A project's plane, from its name and the uid of its Project.
DescribePlane: TypeAlias = Callable[[str, str], Plane]


class Discovery:
    """Carries decisions out in the registry of planes."""

    def __init__(self, reach: Reach, engaging: Engaging, describe: DescribePlane) -> None:
        self._reach = reach
        self._engaging = engaging
        self._describe = describe

    async def reconcile(self, key: ObjectKey, work: Pass) -> Result:
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
                self._engaging.begin(plane)
                # What runs for the plane from now on is no part of this pass: neither the keys of
                # its log lines nor its span.
                Context().run(self._reach.planes.engage, self._describe(name, uid))
                return Result(LATE_AFTER)
            case Disengage():
                await self._reach.planes.disengage(plane)
                return Result(ZERO)  # a project that took the name is engaged by the next pass
            case Leave():
                return Result(self._engaging.look(plane))
            case _:
                assert_never(decision)

    def _find_engaged(self, plane: PlaneName) -> str | None:
        found = self._reach.planes.find(plane)
        return None if found is None else found.plane.uid


def build(tools: Tools, describe: DescribePlane) -> Part:
    engaging = Engaging(
        tools.reach,
        tools.clock,
        tools.measures,
        lambda: ready_projects(ROOT, tools.reach.caches),
    )
    discovery = Discovery(tools.reach, engaging, describe)
    controller = Controller(
        name=NAME,
        writer=WRITER,
        watches=(Watch(Role.ROOT, PROJECT),),
        reconcile=discovery.reconcile,
        share=_share_of_its_own,
        deadline=tools.settings.clients.reconcile_timeout,
    )
    return Part(
        controller=controller,
        watched=(Watched(Role.ROOT, PROJECT, indexes=PROJECT_INDEXES),),
        listeners=(engaging,),
        report=engaging.report,
    )


def build_single(tools: Tools) -> Part:
    """Mode `single`: the one project is known from the start, and nothing is looked for."""
    engaging = Engaging(tools.reach, tools.clock, tools.measures, lambda: frozenset({SINGLE}))
    engaging.begin(SINGLE)
    return Part(listeners=(engaging,), report=engaging.report)


def _share_of_its_own(key: ObjectKey, _: object) -> str:
    """Every project takes turns with every other: engaging one never waits for another."""
    return key.name
