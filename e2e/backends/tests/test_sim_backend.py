from __future__ import annotations

from datetime import timedelta

import pytest

from compute_sim_planes.faults.plans import FaultPlan, Point, default_fault
from e2e.backends.sim import rights
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.scheduler import SimScenarioError, SimScheduler, run_once
from e2e.harness.deploy.rights import MANAGEMENT_USER
from e2e.world.documents import a_bare_deployment
from e2e.world.kinds import DEPLOYMENT
from e2e.world.port import ADMIN, HUB, TENANT, Backend, Needs, PlaneRequest
from e2e.world.scenario import World

NEEDS = Needs(runs_cells=False)


async def _federate(backend: Backend) -> None:
    world = World(backend, NEEDS)
    await world.project.create(a_bare_deployment("web"))
    hub = await world.hub_of(world.project)
    await world.eventually(lambda: hub.get(DEPLOYMENT, "web"))


def test_the_same_seed_gives_the_same_history() -> None:
    plan = FaultPlan("again", 7)
    first, second = (run_once(plan, NEEDS, _federate)[0] for _ in range(2))
    assert first.history.dump() == second.history.dump()


def test_a_run_with_a_crash_ends_like_the_one_without() -> None:
    at = Point(plane=HUB, verb="create", kind="WorkloadDeployment")
    plan = FaultPlan("crash", 1, (default_fault("A2", at),))
    SimScheduler(plan).run("crash", NEEDS, _federate)


def test_a_failing_scenario_prints_how_to_replay_it() -> None:
    async def fail(_: Backend) -> None:
        raise AssertionError("the moon is no cheese")

    with pytest.raises(SimScenarioError, match="the moon is no cheese") as caught:
        SimScheduler().run("moon", NEEDS, fail)
    assert '"scenario":"moon","seed":1' in str(caught.value)


def test_a_field_that_is_not_ours_to_write_is_found_by_an_oracle() -> None:
    async def write(backend: Backend) -> None:
        await _federate(backend)
        assert isinstance(backend, SimBackend)
        world = World(backend, NEEDS)
        path = DEPLOYMENT.path(await world.hub_namespace(world.project), "web", "status")
        # As the operator, with a right that its roles do not grant.
        way = backend.planes.reach(HUB, rights.user_named(ADMIN))
        transport = backend.planes.record(way, HUB, "management")
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = await transport.request("PATCH", path, headers, b'{"status":{"replicas":9}}')
        await answer.close()

    with pytest.raises(SimScenarioError, match=r"O7 at .* status 'replicas'"):
        SimScheduler().run("foreign", NEEDS, write)


def test_operators_hold_the_shipped_rights_and_no_others() -> None:
    async def check_rights(backend: Backend) -> None:
        for user, plane, path in (
            (MANAGEMENT_USER, HUB, "/api/v1/secrets"),
            (MANAGEMENT_USER, "acme", "/api/v1/secrets"),
            ("compute:cell:dfw-1", HUB, "/apis/policy.karmada.io/v1alpha1/propagationpolicies"),
            ("compute:cell:dfw-1", "acme", "/apis/compute.datumapis.com/v1alpha/workloads"),
        ):
            reply = await backend.send(plane, user, PlaneRequest("GET", path))
            assert reply.status == 403, (user, plane, path)
        reply = await backend.send(HUB, MANAGEMENT_USER, PlaneRequest("GET", DEPLOYMENT.path()))
        assert reply.status == 200

    SimScheduler().run("rights", NEEDS, check_rights)


def test_a_link_that_is_cut_is_cut_for_one_operator_alone() -> None:
    async def cut(backend: Backend) -> None:
        await backend.cut("management", HUB)
        world = World(backend, NEEDS)
        await world.project.create(a_bare_deployment("web"))
        await backend.sleep(timedelta(seconds=30))
        hub = await world.hub_of(world.project)
        assert await hub.as_user(TENANT).find(DEPLOYMENT, "web") is None
        await backend.heal("management", HUB)
        await world.eventually(lambda: hub.get(DEPLOYMENT, "web"))

    SimScheduler().run("cut", NEEDS, cut)
