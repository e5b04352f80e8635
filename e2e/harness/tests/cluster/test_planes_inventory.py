"""Objects that one test file leaves on the planes fail that file."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest

from compute_sim_planes.json_types import JsonObject
from e2e.harness.planes.topology import CITY_LABEL
from e2e.harness.stack.hub import CLUSTERS
from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.installation import Installation
from e2e.harness.testing.inventory import await_equal, take_inventory

SHORT: Final = timedelta(seconds=1)


def a_role(name: str) -> JsonObject:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [],
    }


async def test_installed_objects_differ_until_they_are_deleted(real_planes: RealPlanes) -> None:
    before = await take_inventory(real_planes)
    made = Installation(real_planes)
    await made.apply("p2", [a_role("left-behind")])
    with pytest.raises(AssertionError, match=r"left +p2: .*clusterroles left-behind"):
        await await_equal(real_planes, before, patience=SHORT)
    await made.undo()
    await await_equal(real_planes, before)


async def test_a_changed_label_differs_as_well(real_planes: RealPlanes) -> None:
    before = await take_inventory(real_planes)
    async with real_planes.plane("hub").client() as hub:
        for city in ("LAX", "ORD"):
            change: JsonObject = {"metadata": {"labels": {CITY_LABEL: city}}}
            await hub.patch(f"{CLUSTERS}/ord-1", change)
            if city == "LAX":
                with pytest.raises(AssertionError, match=r"missing hub: .*clusters ord-1 .*ORD"):
                    await await_equal(real_planes, before, patience=SHORT)
    await await_equal(real_planes, before)


async def test_what_was_there_before_is_not_taken_away(real_planes: RealPlanes) -> None:
    first, second = Installation(real_planes), Installation(real_planes)
    await first.apply("p2", [a_role("of-somebody")])
    await second.apply("p2", [a_role("of-somebody")])
    await second.undo()
    async with real_planes.plane("p2").client() as client:
        path = await client.path_of(a_role("of-somebody"))
        assert await client.find(path)
        await first.undo()
        assert await client.find(path) is None


async def test_what_is_on_its_way_out_is_not_counted(real_planes: RealPlanes) -> None:
    before = await take_inventory(real_planes)
    await Installation(real_planes).apply("p2", [a_space("soon-gone")])
    async with real_planes.plane("p2").client() as client:
        await client.delete(await client.path_of(a_space("soon-gone")))
    assert await take_inventory(real_planes) == before


def a_space(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
