"""What one replica costs in requests, and that nothing is sent at rest (cell.md 2)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from cell_builders.documents import PROJECT, a_deployment_document
from cell_builders.world import QUOTA_ON, World, condition_of, play, settings_of

from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE
from compute_operator_kit.core.compression import is_packed
from compute_operator_kit.core.objects import Unreadable
from compute_sim_planes.history import Commit

FLOOR = {CELL: 11, HUB: 7, PROJECT: 2}
"""Create → Ready → delete of one replica where every step lasts, networking off."""
QUICK = {CELL: 7, HUB: 3, PROJECT: 2}
NETWORK = 4  # on the cell: binding, SubnetClaim, gate patch, Instance status


async def begin(world: World, *, networking: str = "off") -> None:
    world.start_neighbours()
    world.process(settings=settings_of(quota=QUOTA_ON, networking=networking)).start()
    await world.federate()


async def end(world: World) -> None:
    await world.withdraw()
    await world.eventually(world.has_instances)
    await world.eventually(world.has_no_copies)
    await world.sleep(60)


def spent(world: World) -> Counter[str]:
    """Mutating requests by plane."""
    return Counter(one.address.plane for one in world.writes())


@pytest.mark.spec("C-89")
@pytest.mark.parametrize("networking", ["off", "auto"])
def test_a_slow_replica_costs_at_most_a_quarter_more_than_the_floor(networking: str) -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        milo.milo.options.evaluation_delay = timedelta(seconds=5)
        await begin(world, networking=networking)
        await world.deliver(tag="slow-10")
        await world.eventually(world.is_converged)
        await world.eventually(lambda: world.has_copies("web-0"))
        await end(world)
        found = spent(world)
        for plane, floor in FLOOR.items():
            more = NETWORK if plane == CELL and networking == "auto" else 0
            assert found[plane] <= (floor + more) * 1.25, (plane, found)

    play(scenario)


@pytest.mark.spec("C-98")
def test_a_quick_replica_costs_twelve_requests_in_its_whole_life() -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        milo.milo.options.evaluation_delay = timedelta(milliseconds=50)
        world.provider.options.start_at_once()
        await begin(world)
        # The claims of a project are listed and watched since its first replica.
        await world.deliver("first")
        await world.eventually(lambda: world.is_converged("first"))
        await world.sleep(10)
        before = spent(world)
        await world.deliver()
        await world.eventually(world.is_converged)
        await world.eventually(lambda: world.has_copies("first-0", "web-0"))
        await world.sleep(5)
        await world.withdraw()
        await world.eventually(lambda: world.has_instances("first-0"))
        await world.sleep(60)
        found = spent(world) - before
        assert found <= Counter(QUICK), found

    play(scenario)


@pytest.mark.spec("C-98")
def test_what_lasts_is_shown_within_a_fifth_of_a_second_per_hop() -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        await begin(world)
        await world.deliver("first")
        await world.eventually(lambda: world.is_converged("first"))
        milo.milo.options.pause()
        await world.deliver()
        await world.eventually(lambda: world.exists(CELL, INSTANCE, "web-0"))
        await world.sleep(0.25)
        here = await world.instance("web-0")
        assert condition_of(here, "QuotaGranted")[1] == "PendingEvaluation"
        assert condition_of(here, "Ready")[1] == "SchedulingGatesPresent"
        await world.sleep(0.2)
        copy = await world.copy("web-0")
        assert condition_of(copy, "QuotaGranted")[1] == "PendingEvaluation"
        assert condition_of(await world.deployment(), "Ready")[1] == "InstancesProvisioning"

    play(scenario)


@pytest.mark.spec("C-98")
def test_a_denial_is_not_held_back() -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        await begin(world)
        await world.deliver("first")
        await world.eventually(lambda: world.is_converged("first"))
        del milo
        large = a_deployment_document("large", 1)
        resources = {"runtime": {"resources": {"requests": {"cpu": "1000"}}}}
        await world.create(CELL, large)
        await world.patch(CELL, DEPLOYMENT, "large", {"spec": {"template": {"spec": resources}}})

        async def is_denied() -> bool:
            found = await world.find(CELL, INSTANCE, "large-0")
            return found is not None and condition_of(found, "QuotaGranted")[1] == "QuotaExceeded"

        await world.eventually(is_denied)

    done = play(scenario)
    denied = next(
        commit.at
        for commit in done.history.of(Commit)
        if commit.plane == PROJECT and b'"reason":"QuotaExceeded"' in commit.after
    )
    told = next(
        commit.at
        for commit in done.history.of(Commit)
        if commit.plane == CELL
        and commit.kind == INSTANCE.kind
        and b'"reason":"QuotaExceeded"' in commit.after
    )
    assert told - denied <= timedelta(milliseconds=100)


@pytest.mark.spec("C-89")
@pytest.mark.parametrize("networking", ["off", "auto"])
def test_a_settled_cell_sends_nothing_that_changes_anything(networking: str) -> None:
    async def scenario(world: World) -> None:
        await world.add_milo()
        await begin(world, networking=networking)
        await world.deliver("web", 3)
        await world.deliver("api", 2)
        await world.eventually(world.is_converged)
        await world.eventually(lambda: world.is_converged("api"))
        names = [*(f"web-{i}" for i in range(3)), "api-0", "api-1"]
        await world.eventually(lambda: world.has_copies(*names))
        await world.sleep(30)
        assert await world.rests(minutes=45) == []

    play(scenario)


def test_what_rests_is_kept_packed_on_both_planes() -> None:
    async def scenario(world: World) -> None:
        await world.add_milo()
        await begin(world)
        await world.deliver()
        await world.eventually(world.is_converged)
        await world.sleep(30)
        planes = world.processes[0].operator.planes
        for plane in (CELL, HUB):
            found = planes.lister(plane, INSTANCE).snapshots()
            assert not isinstance(found, Unreadable)
            assert found
            assert all(is_packed(one.kept) for one in found)

    play(scenario)
