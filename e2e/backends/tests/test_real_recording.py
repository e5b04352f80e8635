from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from compute_api_types.wire import JsonObject
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.rest import Client
from e2e.backends.real.recording import Recorder
from e2e.world.kinds import NAMESPACE

BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 the recorder has no event to await
            await asyncio.sleep(0.01)


def a_namespace(name: str, **labels: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "labels": {**labels}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


async def test_versions_are_recorded_in_order_with_their_predecessors() -> None:
    plane = Plane("hub", PlaneParts())
    recorder = Recorder()
    await apply_manifests(plane.connect(), [a_namespace("shop")])
    recorder.watch("hub", Client(plane.connect(), manager="recorder"), [NAMESPACE])

    def shop_versions() -> list[str]:
        versions = recorder.versions("hub", NAMESPACE, since=BEGINNING)
        return [one.key for one in versions if one.key.startswith("shop")]

    await until(lambda: shop_versions() == ["shop"])
    await apply_manifests(plane.connect(), [a_namespace("shop", tier="gold")])
    await until(lambda: shop_versions() == ["shop", "shop"])
    first, second = (
        one for one in recorder.versions("hub", NAMESPACE, since=BEGINNING) if one.key == "shop"
    )
    assert (first.before, second.before) == (b"", first.after)
    assert second.revision > first.revision
    assert recorder.has_lost("hub", NAMESPACE, "other")
    assert not recorder.has_lost("hub", NAMESPACE, "shop")
    assert recorder.held_at(datetime.now(UTC))["hub", NAMESPACE, "shop"] is second
    assert recorder.is_watched("hub", NAMESPACE)
    await recorder.close()
    assert not recorder.is_watched("hub", NAMESPACE)
    await plane.close()


async def test_what_was_read_is_known_to_be_newer_than_the_record() -> None:
    recorder = Recorder()
    read = a_namespace("shop")
    read["metadata"] = {"name": "shop", "resourceVersion": "7"}
    assert not recorder.has_seen("hub", NAMESPACE, read)
