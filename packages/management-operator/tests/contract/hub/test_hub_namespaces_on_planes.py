"""Hub namespaces on simulated planes: removed with their source, and never without proof."""

from __future__ import annotations

import pytest
from management_builders.documents import a_document
from management_builders.hub_script import PROJECT, WD, Hub, play_hub

from compute_management_operator.planes import DEPLOYMENT, HUB, NAMESPACE, ROOT
from compute_management_operator.planes import PROJECT as PROJECT_KIND
from compute_sim_planes.api_server.kinds.kind import GroupResource


async def make_namespace(hub: Hub, name: str) -> str:
    """A project namespace with a deployment that was federated; the hub namespace of it."""
    await hub.world.create(PROJECT, a_document(NAMESPACE, name))
    hub.within = name
    await hub.federate()
    return await hub.namespace()


async def hub_namespaces(hub: Hub) -> list[str]:
    return [name for name in await hub.world.names(HUB, NAMESPACE) if name.startswith("ns-")]


@pytest.mark.spec("AT-12", "OU-07")
def test_namespaces_that_a_tenant_makes_and_removes_do_not_stay_on_the_hub() -> None:
    async def story(hub: Hub) -> None:
        for number in range(15):
            await make_namespace(hub, f"team-{number}")
        for number in range(15):
            await hub.world.delete(PROJECT, NAMESPACE, f"team-{number}")

        async def are_gone() -> bool:
            return not await hub_namespaces(hub)

        await hub.world.eventually(are_gone, within=120)

    play_hub(story)


@pytest.mark.spec("AT-12")
def test_the_namespace_of_a_live_source_stays_when_its_last_workload_goes() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        name = await hub.namespace()
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.eventually(hub.has_no_copy)
        await hub.world.sleep(7200)
        assert name in await hub_namespaces(hub)

    play_hub(story)


@pytest.mark.spec("AT-12")
def test_a_source_that_goes_long_after_its_last_workload_is_found_by_the_resync() -> None:
    async def story(hub: Hub) -> None:
        name = await make_namespace(hub, "team")
        await hub.world.delete(PROJECT, DEPLOYMENT, WD, "team")

        async def is_empty() -> bool:
            return not await hub.world.exists(HUB, DEPLOYMENT, WD, name)

        await hub.world.eventually(is_empty)
        await hub.world.sleep(60)
        await hub.world.delete(PROJECT, NAMESPACE, "team")
        await hub.world.sleep(60)
        assert name in await hub_namespaces(hub)
        await hub.world.sleep(45 * 60)
        assert name not in await hub_namespaces(hub)

    play_hub(story)


@pytest.mark.spec("AT-12")
def test_a_source_that_is_missing_for_a_moment_removes_nothing() -> None:
    """A project plane restored from a backup may answer 404 for what is there a little later."""

    async def story(hub: Hub) -> None:
        await hub.federate()
        name = await hub.namespace()
        store = hub.world.planes[PROJECT].state.store
        source = store.get(GroupResource("", "namespaces"), "", "default")
        assert source is not None
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.eventually(hub.has_no_copy)
        hub.strike_namespace("default")
        await hub.world.sleep(10)
        store.add(source.kind, source.decode(), "restored")
        await hub.world.sleep(3 * 3600)
        assert name in await hub_namespaces(hub)

    play_hub(story)


@pytest.mark.spec("AT-12", "OU-07")
def test_hub_namespaces_go_with_their_project() -> None:
    async def story(hub: Hub) -> None:
        name = await make_namespace(hub, "team")
        await hub.world.delete(PROJECT, NAMESPACE, "team")
        await hub.world.eventually(lambda: hub.world.is_gone(PROJECT, NAMESPACE, "team"))
        await hub.world.delete(ROOT, PROJECT_KIND, PROJECT)

        async def is_gone() -> bool:
            return name not in await hub_namespaces(hub)

        await hub.world.eventually(is_gone, within=300)

    play_hub(story)
