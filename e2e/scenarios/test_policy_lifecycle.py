"""The policy of a city exists exactly as long as a deployment of that city."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import pytest

from e2e.world.scenario import (
    DEPLOYMENT,
    POLICY,
    Needs,
    Plane,
    World,
    a_bare_deployment,
    is_deleting,
    scenario,
    uid_of,
    within,
)

# A policy is written after its first deployment and reaches the hub a moment later.
MOMENT = timedelta(seconds=2)


@pytest.mark.spec("E-03")
@scenario(Needs(runs_cells=False))
async def test_a_policy_stays_for_the_last_deployment_of_its_city(world: World) -> None:
    project = world.project
    hub = await world.hub_of(project)
    await _federate(world, hub, "alpha", "beta")
    before = await world.eventually(lambda: hub.get(POLICY, "city-dfw"))
    await project.delete(DEPLOYMENT, "alpha")
    await world.eventually(lambda: hub.expect_gone(DEPLOYMENT, "alpha"))

    async def is_the_same() -> None:
        policy = await hub.get(POLICY, "city-dfw")
        assert uid_of(policy) == uid_of(before)
        assert not is_deleting(policy)

    await world.stays(is_the_same, within(8))
    await project.delete(DEPLOYMENT, "beta")
    await world.eventually(lambda: hub.expect_gone(POLICY, "city-dfw"), within(30))


@pytest.mark.spec("E-03")
@scenario(Needs(runs_cells=False))
async def test_a_policy_is_there_whenever_a_deployment_is(world: World) -> None:
    project = world.project
    hub = await world.hub_of(project)
    await _federate(world, hub, "beta")
    await world.eventually(lambda: hub.get(POLICY, "city-dfw"))
    await project.delete(DEPLOYMENT, "beta")
    await project.create(a_bare_deployment("gamma"))
    await world.eventually(lambda: hub.expect_gone(DEPLOYMENT, "beta"))
    await world.eventually(lambda: hub.get(DEPLOYMENT, "gamma"))
    await world.eventually(lambda: hub.get(POLICY, "city-dfw"))
    await world.stays(lambda: hub.get(POLICY, "city-dfw"), within(30))
    assert _longest_without_policy(hub) <= MOMENT


async def _federate(world: World, hub: Plane, *names: str) -> None:
    for name in names:
        await world.project.create(a_bare_deployment(name))
    for name in names:
        await world.eventually(partial(hub.get, DEPLOYMENT, name))


def _longest_without_policy(hub: Plane) -> timedelta:
    """The longest time in which the hub had a deployment of the city and no policy for it."""
    changes = [(one.at, DEPLOYMENT, one) for one in hub.versions(DEPLOYMENT)]
    changes += [(one.at, POLICY, one) for one in hub.versions(POLICY)]
    deployments: set[str] = set()
    policies: set[str] = set()
    since: datetime | None = None
    longest = timedelta()
    for at, kind, version in sorted(changes, key=lambda change: change[0]):
        if since is not None:
            longest = max(longest, at - since)
        live = deployments if kind is DEPLOYMENT else policies
        if version.is_gone or is_deleting(version.object):
            live.discard(uid_of(version.object))
        else:
            live.add(uid_of(version.object))
        since = (since or at) if deployments and not policies else None
    assert since is None, "the last deployment is left without its policy"
    return longest
