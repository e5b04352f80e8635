"""The quota controller under its own name, with 16 workers of its own and 4 of them per project."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import pytest
from cell_builders.documents import PROJECT, a_deployment_document, a_namespace_document
from cell_builders.quota_scenes import begin, milo_of, open_cell, times
from cell_builders.world import World, play
from typing_extensions import override

from compute_cell_operator.planes import CELL
from compute_operator_kit.core import metrics
from compute_operator_kit.core.json import JsonObject, decode_json_object
from compute_operator_kit.telemetry.logs import JsonFormatter
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Request
from compute_sim_planes.milo.kinds import GRANTS
from compute_sim_planes.milo.testing import a_grant

OTHERS: Final = tuple(f"other-{number}" for number in range(5))
NAMESPACE: Final = "Namespace"  # the proof of a namespace is the first request for a slot
SLOW: Final = timedelta(seconds=4)


def slow_proofs() -> Fault:
    at = Point(verb="get", kind=NAMESPACE, times=0)
    return Fault("slow", Action.DELAY, at, Parameters(delay=SLOW))


def proofs(world: World) -> list[Request]:
    return [one for one in world.requests() if one.address.kind == NAMESPACE and is_proof(one)]


def is_proof(request: Request) -> bool:
    return request.address.verb == "get" and request.address.plane in {PROJECT, *OTHERS}


def most_at_once(requests: Iterable[Request]) -> int:
    """How many of these requests were under way at the same time."""
    edges: list[tuple[datetime, int]] = []
    for request in requests:
        edges += [(request.begun, 1), (request.at, -1)]
    most = under_way = 0
    for _, step in sorted(edges):
        under_way += step
        most = max(most, under_way)
    return most


async def populate(world: World, number: int, project: str) -> None:
    """A project with a namespace in the cell, and five Instances in it."""
    uid = f"11111111-2222-4333-8444-{number:012}"
    await milo_of(world).milo.add_project(project)
    await milo_of(world).add_namespace("team", uid, project)
    await milo_of(world).inside(project).create(GRANTS, a_grant(project, times(9)))
    await world.create(CELL, a_namespace_document(f"ns-{uid}", project, "team"))
    for name in "abcde":
        await world.create(CELL, a_deployment_document(name, 1, namespace=f"ns-{uid}"))


@pytest.mark.spec("Q-51")
@pytest.mark.fault("D2")
def test_slow_projects_hold_four_workers_each_and_sixteen_in_all() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        world.injector.arm(slow_proofs())
        for number, project in enumerate(OTHERS):
            await populate(world, number, project)
        await world.sleep(60)
        held = proofs(world)
        assert most_at_once(held) == 16
        for project in OTHERS:
            assert most_at_once(one for one in held if one.address.plane == project) <= 4
        limit = (metrics.MAX_CONCURRENT, (("controller", "quota"),))
        assert process.measures.gauges[limit] == 16

    play(scenario, has_networking=False)


def test_reconciles_are_counted_under_the_name_of_the_controller() -> None:
    async def scenario(world: World) -> None:
        process = await begin(world, 1)
        for name in (metrics.RECONCILE_TOTAL, metrics.QUEUE_ADDS):
            assert process.measures.total(name, controller="quota") > 0
        assert process.measures.total(metrics.RECONCILE_ERRORS, controller="quota") == 0
        reads = {one.caller.user_agent for one in world.requests() if one.address.verb == "get"}
        assert "operator (quota)" in reads

    play(scenario, has_networking=False)


class Lines(logging.Handler):
    """Log lines as the process writes them."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: list[JsonObject] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(decode_json_object(self.format(record).encode()))


def test_log_lines_carry_the_name_of_the_controller(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        await world.scale("web", 0)
        await world.eventually(world.has_instances)
        await world.sleep(1)

    logger, kept = logging.getLogger("compute_cell_operator.quota"), Lines()
    caplog.set_level(logging.INFO, logger.name)
    logger.addHandler(kept)
    try:
        play(scenario, has_networking=False)
    finally:
        logger.removeHandler(kept)
    assert [line["msg"] for line in kept.lines] == ["Requesting claim", "Releasing claim"]
    for line in kept.lines:
        assert (line["controller"], line["plane"]) == ("quota", CELL)
        assert line["reconcileID"]
        assert "part" not in line
