"""kstatus of every object version, from creation to deletion, is never early in real scenarios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson
import pytest

from compute_api_types import labels
from compute_sim_planes.faults.plans import FaultPlan
from compute_sim_planes.history import Commit, History
from compute_sim_planes.oracles.invariants import Violation
from e2e.backends.sim.oracles import layout_of
from e2e.backends.sim.scheduler import Body, run_once
from e2e.oracles.premature_status import KINDS, premature_statuses
from e2e.scenarios import test_full_chain, test_quota, test_rollout
from e2e.world.kstatus import KStatus, derive_kstatus
from e2e.world.port import Backend, Needs
from e2e.world.scenario import (
    DEPLOYMENT,
    INSTANCE,
    WORKLOAD,
    JsonObject,
    Plane,
    ScenarioScheduler,
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
class HistoryScheduler:
    """Runs a scenario, then deletes the user's objects, and keeps the history."""

    histories: list[History] = field(default_factory=list[History])
    early: list[Violation] = field(default_factory=list[Violation])

    def run(self, name: str, needs: Needs, body: Body) -> None:
        async def whole_life(backend: Backend) -> None:
            await body(backend)
            await _delete_everything(World(backend, needs))

        backend, violations = run_once(FaultPlan(name, 1), needs, whole_life)
        assert not violations
        self.histories.append(backend.history)
        self.early = premature_statuses(backend.history, layout_of(backend))


async def _delete_everything(world: World) -> None:
    project = world.project
    await world.settle()
    for kind in (WORKLOAD, DEPLOYMENT):
        for document in await project.list(kind):
            await project.delete(kind, name_of(document))

    async def is_empty() -> None:
        for kind in (WORKLOAD, DEPLOYMENT, INSTANCE):
            assert await project.names(kind) == []

    await world.eventually(is_empty, within(60))


@scenario(Needs(has_quota=True))
async def _play_all_of_it_with_a_workload(world: World) -> None:
    """E-20, E-25 and E-26 one after the other, with a Workload."""
    project = world.project
    await world.grant(1)
    await project.create(a_workload("web", a_placement("default", "DFW", replicas=2)))

    async def is_denied() -> None:
        workload = await project.get(WORKLOAD, "web")
        assert condition_of(workload, "Ready").status_and_reason == ("False", "QuotaNotGranted")
        assert condition_of(workload, "Available").status == "True"

    await world.eventually(is_denied, within(60))
    await world.grant(2)
    await world.eventually(lambda: _is_current(project), ROLL)
    restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
    await project.patch(WORKLOAD, "web", {"spec": {"template": restart}})
    await world.eventually(lambda: _is_current(project), ROLL)
    await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("image-unavailable")}})

    async def is_stuck() -> None:
        workload = await project.get(WORKLOAD, "web")
        assert condition_of(workload, "Ready").status_and_reason == ("False", "ImageUnavailable")

    await world.eventually(is_stuck, within(60))
    await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("2.0")}})
    await world.eventually(lambda: _is_current(project), ROLL)


async def _is_current(project: Plane) -> None:
    assert derive_kstatus(await project.get(WORKLOAD, "web")) is KStatus.CURRENT


PLAYED: dict[str, Callable[[ScenarioScheduler], None]] = {
    "E-06": test_full_chain.test_a_workload_runs_in_its_city,
    "E-20": test_quota.test_a_denied_replica_starts_when_there_is_room,
    "E-25": test_rollout.test_a_restart_replaces_slots_from_the_highest_and_keeps_claims,
    "E-26": test_rollout.test_a_bad_image_stops_at_its_first_slot_and_is_mended,
    "all, with a Workload": _play_all_of_it_with_a_workload,
}


@pytest.mark.parametrize("played", PLAYED)
def test_no_status_is_early_from_creation_to_deletion(played: str) -> None:
    scheduler = HistoryScheduler()
    PLAYED[played](scheduler)
    assert [str(one) for one in scheduler.early] == []
    (history,) = scheduler.histories
    last: dict[tuple[str, str], list[KStatus]] = {}
    for (kind, key, uid), readings in _readings(history).items():
        assert readings[0] is KStatus.IN_PROGRESS, f"{kind} {key} {uid} was born {readings[0]}"
        if KStatus.TERMINATING in readings:  # Terminating is final
            going = readings.index(KStatus.TERMINATING)
            assert set(readings[going:]) == {KStatus.TERMINATING}, f"{kind} {key} {uid}: {readings}"
        last[(kind, key)] = readings
    assert {kind for kind, _ in last} >= {"WorkloadDeployment", "Instance"}
    for (kind, key), readings in last.items():
        assert KStatus.CURRENT in readings, f"{kind} {key} never was Current: {readings}"


def _readings(history: History) -> dict[tuple[str, str, str], list[KStatus]]:
    """kstatus of every version of the user's objects."""
    readings: dict[tuple[str, str, str], list[KStatus]] = {}
    for one in history.of(Commit):
        if one.plane == "acme" and one.kind in KINDS and one.after:
            after: JsonObject = orjson.loads(one.after)
            place = (one.kind, one.key, uid_of(after))
            readings.setdefault(place, []).append(derive_kstatus(after))
    return readings
