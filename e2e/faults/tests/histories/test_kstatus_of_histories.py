"""From birth to deletion, nobody who waits for our objects is told anything too early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson
import pytest

from compute_api_types import labels
from compute_sim_planes.fault_plans import FaultPlan
from compute_sim_planes.history import Commit, History
from compute_sim_planes.oracles import Violation
from e2e.backends.port import Backend, Needs
from e2e.backends.sim.judging import layout_of
from e2e.backends.sim.stage import Body, play_once
from e2e.faults.early_verdicts import KINDS, early_verdicts
from e2e.kstatus import Verdict, derive_kstatus
from e2e.scenarios import test_full_chain, test_quota, test_rollout
from e2e.world import (
    DEPLOYMENT,
    INSTANCE,
    WORKLOAD,
    JsonObject,
    Plane,
    Stage,
    World,
    a_placement,
    a_template,
    a_workload,
    condition_of,
    name_of,
    scenario,
    uid_of,
    within,
)

ROLL = within(120)


@dataclass
class HistoryStage:
    """Plays a scenario, then deletes all that its user made, and keeps what was written."""

    histories: list[History] = field(default_factory=list[History])
    early: list[Violation] = field(default_factory=list[Violation])

    def play(self, name: str, needs: Needs, body: Body) -> None:
        async def whole_life(backend: Backend) -> None:
            await body(backend)
            await _delete_everything(World(backend, needs))

        backend, violations = play_once(FaultPlan(name, 1), needs, whole_life)
        assert not violations
        self.histories.append(backend.history)
        self.early = early_verdicts(backend.history, layout_of(backend))


async def _delete_everything(world: World) -> None:
    project = world.project
    await world.settle()
    for kind in (WORKLOAD, DEPLOYMENT):
        for found in await project.list(kind):
            await project.delete(kind, name_of(found))

    async def is_empty() -> None:
        for kind in (WORKLOAD, DEPLOYMENT, INSTANCE):
            assert await project.names(kind) == []

    await world.eventually(is_empty, within(60))


@scenario(Needs(has_quota=True))
async def _play_all_of_it_with_a_workload(world: World) -> None:
    """E-20, E-25 and E-26, one after the other, seen at a Workload."""
    project = world.project
    await world.grant(1)
    await project.create(a_workload("web", a_placement("default", "DFW", replicas=2)))

    async def is_denied() -> None:
        found = await project.get(WORKLOAD, "web")
        assert condition_of(found, "Ready").verdict == ("False", "QuotaNotGranted")
        assert condition_of(found, "Available").status == "True"

    await world.eventually(is_denied, within(60))
    await world.grant(2)
    await world.eventually(lambda: _is_current(project), ROLL)
    restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
    await project.patch(WORKLOAD, "web", {"spec": {"template": restart}})
    await world.eventually(lambda: _is_current(project), ROLL)
    await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("image-unavailable")}})

    async def is_stuck() -> None:
        found = await project.get(WORKLOAD, "web")
        assert condition_of(found, "Ready").verdict == ("False", "ImageUnavailable")

    await world.eventually(is_stuck, within(60))
    await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("2.0")}})
    await world.eventually(lambda: _is_current(project), ROLL)


async def _is_current(project: Plane) -> None:
    assert derive_kstatus(await project.get(WORKLOAD, "web")) is Verdict.CURRENT


PLAYED: dict[str, Callable[[Stage], None]] = {
    "E-06": test_full_chain.test_a_workload_runs_in_its_city,
    "E-20": test_quota.test_a_denied_replica_starts_when_there_is_room,
    "E-25": test_rollout.test_a_restart_replaces_slots_from_the_highest_and_keeps_claims,
    "E-26": test_rollout.test_a_bad_image_stops_at_its_first_slot_and_is_mended,
    "all, with a Workload": _play_all_of_it_with_a_workload,
}


@pytest.mark.parametrize("played", PLAYED)
def test_nobody_is_told_too_early_from_birth_to_deletion(played: str) -> None:
    stage = HistoryStage()
    PLAYED[played](stage)
    assert [str(one) for one in stage.early] == []
    (history,) = stage.histories
    last: dict[tuple[str, str], list[Verdict]] = {}
    for (kind, key, uid), told in _told(history).items():
        assert told[0] is Verdict.IN_PROGRESS, f"{kind} {key} {uid} was born {told[0]}"
        if Verdict.TERMINATING in told:  # once it goes, it says so to its end
            going = told.index(Verdict.TERMINATING)
            assert set(told[going:]) == {Verdict.TERMINATING}, f"{kind} {key} {uid}: {told}"
        last[(kind, key)] = told
    assert {kind for kind, _ in last} >= {"WorkloadDeployment", "Instance"}
    for (kind, key), told in last.items():
        assert Verdict.CURRENT in told, f"{kind} {key} never was Current: {told}"


def _told(history: History) -> dict[tuple[str, str, str], list[Verdict]]:
    """What every object of the user was read as, version by version."""
    told: dict[tuple[str, str, str], list[Verdict]] = {}
    for one in history.of(Commit):
        if one.plane == "acme" and one.kind in KINDS and one.after:
            after: JsonObject = orjson.loads(one.after)
            place = (one.kind, one.key, uid_of(after))
            told.setdefault(place, []).append(derive_kstatus(after))
    return told
