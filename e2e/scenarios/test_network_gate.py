"""An Instance waits for its network and reports the reason if there will be none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from e2e.world.scenario import (
    BINDING,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    SUBNET_CLAIM,
    Needs,
    NetworkOptions,
    World,
    a_bare_deployment,
    a_template,
    condition_of,
    gates_of,
    scenario,
    within,
)

WD = "test-network-wd"


@pytest.mark.spec("E-33")
@scenario(Needs(is_alone=True))
async def test_an_instance_waits_for_its_network(world: World) -> None:
    project = world.project
    options = NetworkOptions(context_delay=timedelta(seconds=20))
    await world.backend.set_networking(DFW.name, options)
    await project.create(a_bare_deployment(WD))
    cell = await world.cell_of(DFW, project)
    await world.eventually(lambda: cell.get(BINDING, f"{WD}-net-0"))

    async def waits() -> None:
        assert "Network" in gates_of(await cell.get(INSTANCE, f"{WD}-0"))

    await world.eventually(waits)
    await world.stays(waits, within(15))

    async def runs() -> None:
        assert gates_of(await cell.get(INSTANCE, f"{WD}-0")) == []
        shown = await project.get(INSTANCE, f"{WD}-0")
        assert condition_of(shown, "Ready").status == "True"

    await world.eventually(runs, within(60))
    assert len(await cell.list(SUBNET_CLAIM)) == 1
    gated = ["Network" in gates_of(one.object) for one in cell.versions(INSTANCE, f"{WD}-0")]
    assert gated == sorted(gated, reverse=True), "the gate came back"


@pytest.mark.spec("E-33")
@scenario(Needs(is_alone=True))
async def test_a_network_that_fails_is_reported_in_the_project(world: World) -> None:
    project = world.project
    await world.backend.set_networking(DFW.name, NetworkOptions(failure="no addresses are left"))
    await project.create(a_bare_deployment(WD))
    cell = await world.cell_of(DFW, project)

    async def is_reported() -> None:
        shown = await project.get(INSTANCE, f"{WD}-0")
        assert condition_of(shown, "Ready").reason == "NetworkFailedToCreate"
        assert "Network" in gates_of(await cell.get(INSTANCE, f"{WD}-0"))

    await world.eventually(is_reported, within(60))
    await world.backend.set_networking(DFW.name, NetworkOptions())

    async def runs() -> None:
        shown = await project.get(INSTANCE, f"{WD}-0")
        assert condition_of(shown, "Ready").status == "True"

    await world.eventually(runs, within(60))


@pytest.mark.spec("E-33")
@scenario(Needs())
async def test_a_binding_goes_with_its_interface(world: World) -> None:
    project = world.project
    two = a_template(networks=("test-network", "test-network"))
    await project.create(a_bare_deployment(WD, template=two))
    cell = await world.cell_of(DFW, project)

    async def has(*bindings: str) -> None:
        assert await cell.names(BINDING) == [*bindings]
        shown = await project.get(INSTANCE, f"{WD}-0")
        assert condition_of(shown, "Ready").status == "True"

    await world.eventually(lambda: has(f"{WD}-net-0", f"{WD}-net-1"), within(60, real=120))
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": a_template()}})
    await world.eventually(lambda: has(f"{WD}-net-0"), within(60, real=120))
