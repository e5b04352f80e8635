"""The simulated controller of autoscalers reports what Kubernetes' own does on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import orjson

from compute_api_types.crd import derive_crds
from compute_api_types.testing import a_deployment, a_workload
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.testing import World, in_virtual_time
from compute_sim_planes.autoscaling import AUTOSCALERS, DEPLOYMENTS, PERIOD, Autoscalers
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import find_condition
from compute_sim_planes.json_types import JsonObject, integer_at, object_at, string_at

AUTOSCALER: Final[JsonObject] = {
    "apiVersion": AUTOSCALERS.api_version,
    "kind": AUTOSCALERS.kind,
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": DEPLOYMENTS.api_version, "kind": "Any", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 6,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    },
}


class ScaledDeployment:
    """A deployment with an autoscaler, and the controller."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client = Client(world.admin, manager="test")
        self.autoscalers = Autoscalers(self.client, world.clock)

    async def open(self, number: int | None) -> None:
        crds: list[JsonObject] = [orjson.loads(orjson.dumps(one)) for one in derive_crds()]
        await apply_manifests(self.world.admin, crds)
        dumped = a_deployment(a_workload()).model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        document: JsonObject = orjson.loads(orjson.dumps(dumped))
        document["metadata"] = {"name": "web", "namespace": "default"}
        if number is not None:
            object_at(document, "spec")["replicas"] = number
        made = await self.client.create(DEPLOYMENTS, document)
        status: JsonObject = {**object_at(made, "status"), "selector": "a=b"}
        change: JsonObject = {"status": status}
        await self.client.patch(
            DEPLOYMENTS, "web", change, namespace="default", subresource="status"
        )
        await self.client.create(AUTOSCALERS, AUTOSCALER)

    async def evaluate(self) -> None:
        await self.world.clock.sleep(2 * PERIOD)

    async def number(self) -> int | None:
        deployment = await self.client.get(DEPLOYMENTS, "web", "default")
        return integer_at(deployment, "spec", "replicas")

    async def reason(self, condition: str) -> tuple[str, str]:
        autoscaler = await self.client.get(AUTOSCALERS, "web", "default")
        shown = find_condition(autoscaler or {}, condition) or {}
        return string_at(shown, "status"), string_at(shown, "reason")


def play(story: Callable[[ScaledDeployment], Awaitable[None]]) -> None:
    async def main(world: World) -> None:
        scaled = ScaledDeployment(world)
        running = asyncio.create_task(scaled.autoscalers.run())
        try:
            await story(scaled)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    in_virtual_time(main)


def test_the_number_follows_the_load_within_its_bounds() -> None:
    async def story(scaled: ScaledDeployment) -> None:
        await scaled.open(2)
        for load, number, limited in (
            (4, 4, ("False", "DesiredWithinRange")),
            (9, 6, ("True", "TooManyReplicas")),
            (1, 2, ("True", "TooFewReplicas")),
        ):
            scaled.autoscalers.loads["web"] = load
            await scaled.evaluate()
            assert await scaled.number() == number
            assert await scaled.reason("ScalingLimited") == limited
        assert await scaled.reason("AbleToScale") == ("True", "SucceededGetScale")
        assert await scaled.reason("ScalingActive") == ("True", "ValidMetricFound")

    play(story)


def test_without_metrics_the_number_stands() -> None:
    async def story(scaled: ScaledDeployment) -> None:
        await scaled.open(5)
        scaled.autoscalers.has_metrics = False
        scaled.autoscalers.loads["web"] = 2
        await scaled.evaluate()
        assert await scaled.reason("ScalingActive") == ("False", "FailedGetResourceMetric")
        assert await scaled.number() == 5

    play(story)


def test_an_object_without_a_number_is_not_scaled_and_one_with_nought_rests() -> None:
    async def story(scaled: ScaledDeployment) -> None:
        await scaled.open(None)
        scaled.autoscalers.loads["web"] = 4
        await scaled.evaluate()
        assert await scaled.reason("AbleToScale") == ("False", "FailedGetScale")
        assert await scaled.number() is None
        change: JsonObject = {"spec": {"replicas": 0}}
        await scaled.client.patch(
            DEPLOYMENTS, "web", change, namespace="default", subresource="scale"
        )
        await scaled.evaluate()
        assert await scaled.reason("ScalingActive") == ("False", "ScalingDisabled")
        assert await scaled.number() == 0

    play(story)
