"""A process that dies and comes back among many objects, and a project that never does."""

from __future__ import annotations

import gc
import weakref

import pytest
from management_builders.documents import a_cluster_document, a_workload_document
from management_builders.hub_script import (
    PROJECT,
    WD,
    WD_READY,
    Hub,
    play_hub,
)
from management_builders.world import World, condition_of, play, shown, status_of

from compute_management_operator.planes import DEPLOYMENT, HUB, ROOT, WORKLOAD
from compute_management_operator.planes import PROJECT as PROJECTS
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import PlaneName

MANY = 120
REPORTING = "compute_federation_deployments_reporting_cells"


@pytest.mark.fault("A5")
def test_a_killed_process_comes_back_to_many_objects_and_writes_none_of_them() -> None:
    """How long that takes with ten thousand is measured by `bench -- management`."""

    async def scenario(world: World) -> None:
        projects = ("acme", "beta", "corp")
        for project in projects:
            await world.add_project(project, cities=("DFW",))
        await world.create(HUB, a_cluster_document("dfw-1"))
        first = world.process()
        first.start()
        for number in range(MANY):
            await world.create(projects[number % 3], a_workload_document(f"w-{number}"))

        async def are_there() -> bool:
            return len(await world.names(HUB, DEPLOYMENT)) == MANY

        await world.eventually(are_there)
        await world.sleep(120)
        await first.kill()
        world.process("second").start()
        await world.sleep(60)
        assert shown(world.writes("second")) == []
        # The Leases of cells are read every 5 s, whatever was restarted.
        reads = [
            one
            for one in world.requests("second")
            if one.address.verb == "list" and one.address.resource != "leases"
        ]
        assert len(reads) == len({(one.address.plane, one.address.resource) for one in reads})
        await world.create("acme", a_workload_document("more"))
        await world.eventually(lambda: world.exists("acme", DEPLOYMENT, "more-us-dfw"), within=5)

    play(scenario)


@pytest.mark.fault("D3")
def test_what_was_held_for_a_project_that_is_gone_is_let_go_of() -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme", cities=("DFW",))
        process = world.process()
        process.start()
        await world.create("acme", a_workload_document())
        await world.eventually(lambda: world.exists("acme", DEPLOYMENT, "web-us-dfw"))
        await world.sleep(5)
        engaged = process.operator.planes.find(PlaneName("acme"))
        store = process.operator.planes.find_store(PlaneName("acme"), WORKLOAD)
        assert engaged is not None
        assert store is not None
        let_go: list[str] = []
        weakref.finalize(engaged, let_go.append, "plane")
        weakref.finalize(store, let_go.append, "store")
        del engaged, store
        await world.delete(ROOT, PROJECTS, "acme")
        await world.sleep(600)
        gc.collect()
        assert sorted(let_go) == ["plane", "store"]

    play(scenario)


@pytest.mark.fault("E6")
def test_without_an_interpreter_nothing_is_available_and_the_gauge_shows_it() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.federate("late-us-dfw")
        await world.sleep(120)  # from here on nothing is aggregated
        edited: JsonObject = {"spec": {"scaleSettings": {"minReplicas": 4}}}
        await world.patch(PROJECT, DEPLOYMENT, WD, edited)
        await world.sleep(600)
        known = await world.get(PROJECT, DEPLOYMENT, WD)
        assert condition_of(known, "Available")[0] == "True"
        assert status_of(known)["observedGeneration"] == 1  # of the last known status
        late = await world.get(PROJECT, DEPLOYMENT, "late-us-dfw")
        assert condition_of(late, "Available")[:2] == ("False", "InstancesProvisioning")
        gauges = hub.process.measures.gauges
        assert gauges[(REPORTING, (("cells", "0"),))] == 1
        assert gauges[(REPORTING, (("cells", "1"),))] == 1
        assert await hub.has_copy()

    play_hub(story)
