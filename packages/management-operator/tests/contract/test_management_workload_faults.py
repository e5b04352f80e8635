"""The life of a Workload with one fault at each of its writes: the end is always the same.

Every write of the reference run is struck once in each way (faults.md 1, 3): the process dies
before it, dies after it with the reply lost, or the plane answers badly. What the planes hold in
the end, and how often each object was created and deleted, must be as without a fault.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pytest
from management_builders.documents import a_placement_document, a_workload_document
from management_builders.world import (
    Run,
    World,
    name_of,
    play,
    single_settings,
    status_of,
)

from compute_api_types import labels
from compute_management_operator.planes import DEPLOYMENT, SINGLE, WORKLOAD
from compute_operator_kit.core.json import Json, JsonObject, member_int, member_list, member_object
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Commit, Injected
from compute_sim_planes.oracles.canonical_state import canonical_state

REST = 120.0
CRASHES = frozenset({Action.CRASH_BEFORE, Action.CRASH_AFTER})


@dataclass(frozen=True, slots=True)
class End:
    """What a run comes to."""

    state: bytes
    made: Counter[tuple[str, str]]  # (CREATE or DELETE, object) → how often


class Operators:
    """The operator, and the next one when it has died."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._count = 0
        self._deaths: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._count += 1
        process = self._world.process(f"operator-{self._count}", settings=single_settings())

        async def die() -> None:
            await process.kill()
            await self._world.sleep(1)
            self.start()

        def crashed(_: Fault) -> None:
            task = asyncio.get_running_loop().create_task(die())
            self._deaths.add(task)
            task.add_done_callback(self._deaths.discard)

        process.life.on_crash = crashed
        process.start()


async def act_as_cell(world: World) -> None:
    """Reports every deployment as running, as soon as it sees a generation of it."""
    while True:
        for existing in await world.listed(SINGLE, DEPLOYMENT):
            metadata = member_object(existing, "metadata")
            observed = member_int(status_of(existing), "observedGeneration")
            if observed != metadata["generation"] and "deletionTimestamp" not in metadata:
                await world.run_deployment(SINGLE, name_of(existing))
        await world.sleep(0.3)


async def live(world: World, settle: float) -> None:
    """Created, running, edited, one of them deleted; one that is left alone all the time."""
    await world.add_project_plane(cities=("DFW", "LHR", "ORD"))
    Operators(world).start()
    cell = asyncio.create_task(act_as_cell(world))
    await world.create(SINGLE, a_workload_document("bystander"))
    await world.create(SINGLE, a_workload_document("web", {"us": ("DFW", "ORD")}))
    await world.create(SINGLE, a_workload_document("gone"))
    await world.sleep(settle)
    placements: list[Json] = [a_placement_document("us", ("DFW", "LHR"), replicas=2)]
    await world.patch(SINGLE, WORKLOAD, "web", {"spec": {"placements": placements}})
    await world.delete(SINGLE, WORKLOAD, "gone")
    await world.sleep(REST)
    cell.cancel()
    await asyncio.wait({cell})


def play_out(*faults: Fault, settle: float = 20) -> tuple[Run, End]:
    states: list[bytes] = []

    async def scenario(world: World) -> None:
        await live(world, settle)
        existing = [
            *await world.listed(SINGLE, WORKLOAD),
            *await world.listed(SINGLE, DEPLOYMENT),
        ]
        states.append(canonical_state({SINGLE: [_without_names(one) for one in existing]}))

    # A process that dies leaves what it was doing behind: that is the point.
    done = play(scenario, *faults, is_clean=False)
    assert done.world.error_lines == []
    made = Counter(
        (commit.type, f"{commit.kind} {commit.key}")
        for commit in done.history.of(Commit)
        if commit.plane == SINGLE
        and commit.type in {"ADDED", "DELETED"}
        and commit.kind in {"Workload", "WorkloadDeployment"}
    )
    return done, End(states[0], made)


def _without_names(existing: JsonObject) -> JsonObject:
    """UIDs stand in labels too, and differ from run to run."""
    member_object(member_object(existing, "metadata"), "labels").pop(labels.WORKLOAD_UID, None)
    member_object(member_object(existing, "spec"), "workloadRef").pop("uid", None)
    return existing


@cache
def reference() -> tuple[End, int]:
    """The run without a fault, and how many writes it took."""
    done, end = play_out()
    writes = done.world.writes("operator-1")
    assert [one for one in writes if one.is_refused] == []
    return end, len(writes)


def strike_each_write(fault_id: str, action: Action, parameters: Parameters | None = None) -> None:
    expected, writes = reference()
    assert writes > 15
    wrong: list[int] = []
    for nth in range(1, writes + 1):
        at = Point(plane=SINGLE, verb="write", nth=nth)
        done, existing = play_out(Fault(fault_id, action, at, parameters or Parameters()))
        struck = bool(list(done.history.of(Injected)))
        assert struck == (len(done.world.processes) > 1) or action not in CRASHES
        if struck and existing != expected:
            wrong.append(nth)
    assert wrong == [], f"after {action} at these writes the end is another"


@pytest.mark.spec("M-90")
@pytest.mark.fault("A1")
def test_a_crash_before_any_write_changes_nothing_in_the_end() -> None:
    strike_each_write("A1", Action.CRASH_BEFORE)


@pytest.mark.spec("M-90")
@pytest.mark.fault("A2")
def test_a_crash_after_any_write_with_the_reply_lost_changes_nothing_in_the_end() -> None:
    strike_each_write("A2", Action.CRASH_AFTER)


@pytest.mark.fault("C5")
def test_a_timeout_after_any_committed_write_changes_nothing_in_the_end() -> None:
    strike_each_write("C5", Action.TIMEOUT_COMMITTED)


@pytest.mark.fault("C1", "C4")
@pytest.mark.parametrize(("status", "reason"), [(409, "Conflict"), (500, "InternalError")])
def test_a_bad_answer_to_any_write_changes_nothing_in_the_end(status: int, reason: str) -> None:
    strike_each_write("C1", Action.ERROR, Parameters(status=status, reason=reason))


def test_the_reference_run_ends_ready_and_is_the_same_every_time() -> None:
    end, _ = reference()
    assert play_out()[1] == end
    assert end.state.count(b'"PlacementsReady"') == 4  # two Workloads, one placement each
    assert end.made["DELETED", "Workload default/gone"] == 1
    assert end.made["ADDED", "WorkloadDeployment default/web-us-lhr"] == 1
    assert end.made["DELETED", "WorkloadDeployment default/web-us-ord"] == 1


@pytest.mark.fault("A3")
def test_a_crash_loop_at_one_point_leaves_nothing_behind_once_it_is_lifted() -> None:
    expected, _ = reference()
    at = Point(plane=SINGLE, verb="create", kind="WorkloadDeployment", times=20)
    done, existing = play_out(Fault("A3", Action.CRASH_BEFORE, at), settle=60)
    assert existing == expected
    assert len(done.world.processes) == 21


def names(existing: Sequence[JsonObject]) -> list[str]:
    return sorted(name_of(one) for one in existing)


@pytest.mark.fault("G9")
def test_a_finalizer_that_a_tenant_strips_is_added_again_while_the_workload_exists() -> None:
    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW",))
        world.process(settings=single_settings()).start()
        await world.create(SINGLE, a_workload_document())
        await world.sleep(2)
        theirs = {"metadata": {"finalizers": ["example.com/theirs"]}}
        await world.patch(SINGLE, WORKLOAD, "web", theirs)
        await world.sleep(2)
        existing = member_object(await world.get(SINGLE, WORKLOAD, "web"), "metadata")
        assert member_list(existing, "finalizers") == [
            "example.com/theirs",
            labels.WORKLOAD_FINALIZER,
        ]
        await world.delete(SINGLE, WORKLOAD, "web")
        await world.sleep(2)
        assert names(await world.listed(SINGLE, DEPLOYMENT)) == []
        existing = member_object(await world.get(SINGLE, WORKLOAD, "web"), "metadata")
        assert member_list(existing, "finalizers") == ["example.com/theirs"]

    play(scenario)
