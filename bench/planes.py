"""Cost and speed of real planes: start time, memory, latency of Karmada and quota at rest.

Times are absolute, because the deadlines of scenarios depend on them: how long an object takes to
its member and its status back, and a claim to its decision.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Final

from compute_sim_planes.json_types import value_at
from e2e.harness.access.client import PlaneClient, has_condition
from e2e.harness.access.waiting import until
from e2e.harness.planes.plane_manifests import a_namespace
from e2e.harness.planes.topology import FULL
from e2e.harness.stack.stack import Options, RealPlanes
from e2e.harness.testing.helpers import (
    INTERPRETER,
    WIDGETS,
    a_city_policy,
    a_claim,
    a_grant,
    a_registration,
    a_widget,
    a_widget_path,
)
from tools.bench import Row

OBJECTS: Final = 12
# A template costs about 13 hub writes and 6 events; at Karmada's 40 requests per second this lets
# its token bucket refill, else the rate limit is measured instead of the latency.
REST: Final = 1.0
NAMESPACE: Final = "bench"
UP_TARGET: Final = 90.0
DOWN_TARGET: Final = 10.0
MEMORY_TARGET: Final = 4.0
CARRY_TARGET: Final = 0.5
VERDICT_TARGET: Final = 0.3
PROJECT: Final = "p1"
QUOTA: Final = "/apis/quota.miloapis.com/v1alpha1"
RESOURCE_TYPE: Final = "bench.example.com/things"
# The resolution of times: far below any limit, above one request.
POLL_INTERVAL: Final = 0.01


def run() -> list[Row]:
    return asyncio.run(_run())


async def _run() -> list[Row]:
    planes = RealPlanes(FULL, Options(crds=(WIDGETS,)))
    await planes.start()
    try:
        delivered, reported = await _carry(planes)
        decided = await _decide(planes)
        memory = planes.rss() / 1024**3
        up = planes.took.total_seconds()
    finally:
        began = time.monotonic()
        await planes.stop()
    down = time.monotonic() - began
    return [
        _row("full topology up", up, "s", UP_TARGET),
        _row("full topology down", down, "s", DOWN_TARGET),
        _row("memory of all processes", memory, "GB", MEMORY_TARGET),
        _row("object → member, p50", median(delivered), "s", CARRY_TARGET),
        _row("object → member, longest", max(delivered), "s", None),
        _row("member status → hub, p50", median(reported), "s", CARRY_TARGET),
        _row("member status → hub, longest", max(reported), "s", None),
        _row("claim → verdict through the gateway, p50", median(decided), "s", VERDICT_TARGET),
        _row("claim → verdict through the gateway, longest", max(decided), "s", None),
    ]


def _row(measure: str, value: float, unit: str, target: float | None) -> Row:
    return Row(measure, value, unit, target=target, holds=target is None or value <= target)


async def _carry(planes: RealPlanes) -> tuple[list[float], list[float]]:
    names = [f"widget-{index}" for index in range(OBJECTS)]
    async with (
        planes.guard(),
        planes.plane("hub").client() as hub,
        planes.plane("dfw-1").client() as cell,
    ):
        await hub.create(a_namespace(NAMESPACE))
        await hub.apply(INTERPRETER)
        await hub.create(a_city_policy(NAMESPACE, "DFW"))
        # All are delivered before the first report: a status right after its object is not at rest.
        delivered = [await _deliver(hub, cell, name) for name in names]
        reported = [await _report(hub, cell, name) for name in names]
    return delivered[1:], reported[1:]  # the first creates namespace and informers


async def _deliver(hub: PlaneClient, cell: PlaneClient, name: str) -> float:
    path = a_widget_path(NAMESPACE, name)

    async def has_arrived() -> bool:
        return await cell.find(path) is not None

    return await _seconds(hub.create(a_widget(NAMESPACE, name)), has_arrived)


async def _report(hub: PlaneClient, cell: PlaneClient, name: str) -> float:
    path = a_widget_path(NAMESPACE, name)

    async def is_reported() -> bool:
        return value_at(await hub.get(path), "status", "phase") == name

    return await _seconds(cell.patch(f"{path}/status", {"status": {"phase": name}}), is_reported)


async def _decide(planes: RealPlanes) -> list[float]:
    """From an acknowledged claim to the condition Granted."""
    async with (
        planes.guard(),
        planes.milo.client() as root,
        planes.milo.client(PROJECT) as project,
    ):
        registered = await root.create(a_registration("bench-things", RESOURCE_TYPE))
        path = await root.path_of(registered)

        async def is_active() -> bool:
            return has_condition(await root.get(path), "Active")

        await until("the registration to be active", is_active, check=planes.check)
        await project.create(a_grant(PROJECT, "bench", RESOURCE_TYPE, 1000))
        names = [f"claim-{index}" for index in range(OBJECTS)]
        return [await _claim(project, name) for name in names]


async def _claim(project: PlaneClient, name: str) -> float:
    path = f"{QUOTA}/namespaces/default/resourceclaims/{name}"

    async def is_granted() -> bool:
        return has_condition(await project.get(path), "Granted")

    return await _seconds(project.create(a_claim(PROJECT, name, RESOURCE_TYPE)), is_granted)


async def _seconds(act: Awaitable[object], happened: Callable[[], Awaitable[bool]]) -> float:
    """From the acknowledged request to its effect, on planes that had time to settle."""
    await asyncio.sleep(REST)
    await act
    began = time.monotonic()
    while True:
        if await happened():
            return time.monotonic() - began
        await asyncio.sleep(POLL_INTERVAL)
