from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest_asyncio

from compute_sim_planes.json_types import JsonObject, value_at
from e2e.harness.access.client import PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.planes.plane_manifests import a_namespace
from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.helpers import INTERPRETER, a_city_policy, a_widget, a_widget_path


@pytest_asyncio.fixture
async def hub(real_planes: RealPlanes) -> AsyncIterator[PlaneClient]:
    async with real_planes.plane("hub").client() as client:
        yield client


@pytest_asyncio.fixture
async def dfw(real_planes: RealPlanes) -> AsyncIterator[PlaneClient]:
    async with real_planes.plane("dfw-1").client() as client:
        yield client


@pytest_asyncio.fixture
async def namespace(hub: PlaneClient) -> AsyncIterator[str]:
    name = f"ns-{uuid.uuid4()}"
    await hub.create(a_namespace(name))
    yield name
    await hub.delete(f"/api/v1/namespaces/{name}")


async def seconds_until(
    planes: RealPlanes, what: str, ask: Callable[[], Awaitable[JsonObject | bool | None]]
) -> float:
    began = time.monotonic()
    await until(what, ask, check=planes.check, patience=timedelta(seconds=30))
    return time.monotonic() - began


async def test_object_reaches_the_cell_of_its_city_and_no_other(
    real_planes: RealPlanes, hub: PlaneClient, dfw: PlaneClient, namespace: str
) -> None:
    await hub.create(a_city_policy(namespace, "DFW"))
    await hub.create(a_widget(namespace, "one", 3))
    path = a_widget_path(namespace, "one")

    async def arrived() -> JsonObject | None:
        return await dfw.find(path)

    await seconds_until(real_planes, "the widget on dfw-1", arrived)
    assert value_at(await dfw.get(path), "spec", "size") == 3
    async with real_planes.plane("ord-1").client() as elsewhere:
        assert await elsewhere.find(path) is None


async def test_status_of_the_cell_comes_back_to_the_hub(
    real_planes: RealPlanes, hub: PlaneClient, dfw: PlaneClient, namespace: str
) -> None:
    await hub.apply(INTERPRETER)
    await hub.create(a_city_policy(namespace, "DFW"))
    await hub.create(a_widget(namespace, "two", 1))
    path = a_widget_path(namespace, "two")

    async def arrived() -> JsonObject | None:
        return await dfw.find(path)

    async def reported() -> bool:
        return value_at(await hub.get(path), "status", "phase") == "Running"

    await seconds_until(real_planes, "the widget on dfw-1", arrived)
    await dfw.patch(f"{path}/status", {"status": {"phase": "Running"}})
    await seconds_until(real_planes, "its status on the hub", reported)


async def test_object_deleted_on_the_hub_goes_from_the_cell(
    real_planes: RealPlanes, hub: PlaneClient, dfw: PlaneClient, namespace: str
) -> None:
    await hub.create(a_city_policy(namespace, "DFW"))
    await hub.create(a_widget(namespace, "three", 1))
    path = a_widget_path(namespace, "three")

    async def arrived() -> JsonObject | None:
        return await dfw.find(path)

    async def gone() -> bool:
        return await dfw.find(path) is None

    await seconds_until(real_planes, "the widget on dfw-1", arrived)
    await hub.delete(path)
    await seconds_until(real_planes, "its end on dfw-1", gone)
