"""Operators as pods are rolled, upgraded, evicted, rebooted, out of memory, without tokens.

Runs only on backends with pods. Each time a Workload is in progress; nothing of it is lost or made
twice.
"""

from __future__ import annotations

from dataclasses import replace

from compute_api_types import labels
from e2e.world.scenario import (
    CLAIM,
    DEPLOYMENT,
    DFW,
    HUB,
    INSTANCE,
    MANAGEMENT,
    JsonObject,
    Needs,
    Plane,
    World,
    a_bare_deployment,
    annotations_of,
    condition_of,
    name_of,
    scenario,
    uid_of,
    within,
)

WD = "test-pods-wd"
OPERATORS = (MANAGEMENT, DFW.name)
ALONE = Needs(has_quota=True, is_alone=True)
HURT = Needs(has_quota=True, is_alone=True, expects_errors=True)
SOON = within(120, real=180)


def _names(count: int) -> list[str]:
    return [f"{WD}-{ordinal}" for ordinal in range(count)]


async def _are_ready(plane: Plane, *names: str) -> None:
    assert await plane.names(INSTANCE) == sorted(names)
    for name in names:
        assert condition_of(await plane.get(INSTANCE, name), "Ready").status == "True", name


async def _run(world: World, replicas: int) -> None:
    await world.project.create(a_bare_deployment(WD, replicas=replicas))
    await world.eventually(lambda: _are_ready(world.project, *_names(replicas)), SOON)


async def _scale(world: World, replicas: int) -> None:
    change: JsonObject = {"spec": {"scaleSettings": {"minReplicas": replicas}}}
    await world.project.patch(DEPLOYMENT, WD, change)


async def _scale_and_await(world: World, replicas: int) -> None:
    await _scale(world, replicas)
    await world.eventually(lambda: _are_ready(world.project, *_names(replicas)), SOON)


async def _uids(plane: Plane) -> dict[str, str]:
    return {name_of(one): uid_of(one) for one in await plane.list(INSTANCE)}


def _lives(plane: Plane) -> dict[str, int]:
    """How many Instances there were of each name."""
    seen = {uid_of(one.object): name_of(one.object) for one in plane.versions(INSTANCE)}
    return {name: [*seen.values()].count(name) for name in seen.values()}


@scenario(ALONE)
async def test_operators_are_rolled_while_a_deployment_rolls(world: World) -> None:
    await _run(world, 3)
    project, cell = world.project, await world.cell_of(DFW, world.project)
    claims = {name_of(one): uid_of(one) for one in await project.list(CLAIM)}
    before = {operator: world.pods.pod_names(operator) for operator in OPERATORS}
    template: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "once"}}}
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": template}})
    for operator in OPERATORS:
        await world.pods.begin_roll(operator)

    async def is_done() -> None:
        await _are_ready(project, *_names(3))
        for name in _names(3):
            instance = await cell.get(INSTANCE, name)
            assert annotations_of(instance).get(labels.RESTARTED_AT) == "once", name

    await world.eventually(is_done, SOON)
    for operator in OPERATORS:
        await world.pods.await_ready(operator)
        assert not set(world.pods.pod_names(operator)) & set(before[operator]), operator
    # Each slot was replaced exactly once, with the claim it had.
    assert _lives(cell) == dict.fromkeys(_names(3), 2)
    assert {name_of(one): uid_of(one) for one in await project.list(CLAIM)} == claims


@scenario(replace(ALONE, is_slow=True))
async def test_two_versions_side_by_side_lose_no_instance(world: World) -> None:
    """Each operator meets the other's previous version, in an upgrade and in a return from it."""
    try:
        for operator in OPERATORS:
            await world.pods.run_version(operator, is_previous=True)
        await _run(world, 1)
        cell = await world.cell_of(DFW, world.project)
        first = await _uids(cell)
        steps = ((MANAGEMENT, False), (DFW.name, False), (MANAGEMENT, True))
        # Then the cell is of this version and management of the previous one.
        for replicas, (operator, is_previous) in enumerate(steps, 2):
            before = await _uids(cell)
            await world.pods.run_version(operator, is_previous=is_previous)
            await _scale_and_await(world, replicas)
            assert before.items() <= (await _uids(cell)).items(), operator
    finally:
        for operator in OPERATORS:
            await world.pods.run_version(operator, is_previous=False)
    await _scale_and_await(world, 1)
    assert await _uids(cell) == first
    assert _lives(cell) == dict.fromkeys(_names(4), 1)


@scenario(ALONE)
async def test_evicted_pods_are_replaced_and_take_up_the_work(world: World) -> None:
    await _run(world, 1)
    cell = await world.cell_of(DFW, world.project)
    running = await _uids(cell)
    for operator in OPERATORS:
        (pod,) = world.pods.pod_names(operator)
        await world.pods.evict(operator, pod)
    await _scale(world, 2)
    await world.eventually(lambda: _are_ready(world.project, *_names(2)), SOON)
    for operator in OPERATORS:
        await world.pods.await_ready(operator)
    assert running.items() <= (await _uids(cell)).items()
    assert _lives(cell) == dict.fromkeys(_names(2), 1)


@scenario(HURT)
async def test_nodes_that_lose_power_come_back_with_their_operators(world: World) -> None:
    await _run(world, 1)
    cell = await world.cell_of(DFW, world.project)
    running = await _uids(cell)
    await _scale(world, 2)
    for operator in OPERATORS:
        await world.pods.reboot_node(operator)
    for operator in OPERATORS:
        await world.pods.await_ready(operator)
    await world.eventually(lambda: _are_ready(world.project, *_names(2)), SOON)
    assert running.items() <= (await _uids(cell)).items()
    assert _lives(cell) == dict.fromkeys(_names(2), 1)


@scenario(HURT)
async def test_an_operator_that_ran_out_of_memory_is_started_again(world: World) -> None:
    await _run(world, 1)
    for operator in OPERATORS:
        assert "OOMKilled" in await world.pods.exhaust_memory(operator), operator
    await _scale(world, 2)
    for operator in OPERATORS:
        await world.pods.await_ready(operator)
    await world.eventually(lambda: _are_ready(world.project, *_names(2)), SOON)
    assert _lives(await world.cell_of(DFW, world.project)) == dict.fromkeys(_names(2), 1)


@scenario(Needs(has_quota=True, is_alone=True, replicas=2))
async def test_the_second_replica_takes_over_when_the_leader_goes(world: World) -> None:
    await _run(world, 1)
    led = {operator: await world.pods.leader(operator) for operator in OPERATORS}
    for operator, pod in led.items():
        await world.pods.delete_pod(operator, pod)
    await _scale(world, 2)
    await world.eventually(lambda: _are_ready(world.project, *_names(2)), SOON)
    for operator, pod in led.items():
        await world.pods.await_ready(operator)
        assert await world.pods.leader(operator) != pod
    assert _lives(await world.cell_of(DFW, world.project)) == dict.fromkeys(_names(2), 1)


@scenario(HURT)
async def test_an_expired_token_is_replaced_by_the_one_kubelet_brings(world: World) -> None:
    await _run(world, 1)
    pods = world.pods.pod_names(MANAGEMENT)
    await world.pods.expire_token(MANAGEMENT, HUB)
    # Tokens are read again after 30 s; a kubelet stopped for longer would make its node NotReady.
    await world.sleep(31, pods=31)
    await world.project.create(a_bare_deployment("meanwhile"))

    async def is_refused() -> None:
        refused = {one.plane for one in world.requests() if one.status == 401}
        assert HUB in refused, refused

    try:
        await world.eventually(is_refused, within(12))
    finally:
        await world.pods.rotate_tokens(MANAGEMENT)
    await world.eventually(lambda: _are_ready(world.project, "meanwhile-0", *_names(1)), SOON)
    assert world.pods.pod_names(MANAGEMENT) == pods
