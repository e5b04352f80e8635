"""Real containers become more while they are busy, and fewer again, with the hub cut off.

Runs only on backends with pods. Kubelets measure what the containers use, Kubernetes' controller of
autoscalers sets the number, and the pod provider runs it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from e2e.world.scenario import (
    AUTOSCALER,
    DFW,
    HUB,
    INSTANCE,
    POD,
    WORKLOAD,
    JsonObject,
    JsonValue,
    Needs,
    Plane,
    World,
    a_placement,
    a_workload,
    add_component,
    condition_of,
    object_at,
    objects_at,
    scenario,
    text_at,
    within,
)

WD: Final = "web-default-dfw"
COMPONENT: Final = "autoscaling/cell"
ON: Final[JsonObject] = {"autoscaling": {"mode": "on", "scaleDownStabilization": "10s"}}
# One busy container uses all that it requests, twice its target.
HALF: Final[JsonObject] = {"resource": {"name": "cpu", "target": {"averageUtilization": 50}}}
NEEDS: Final = Needs(is_alone=True, is_slow=True)
# A kubelet measures about every ten seconds, and a rate needs two samples.
MEASURED: Final = within(180, real=300)


async def _runs(cell: Plane, replicas: int) -> None:
    """So many Pods are ready, one for each Instance."""
    names = [f"{WD}-{number}" for number in range(replicas)]
    assert await cell.names(INSTANCE) == names
    assert await cell.names(POD) == names
    for name in names:
        assert condition_of(await cell.get(POD, name), "Ready").status == "True", name


async def _ask(world: World, cell: Plane, name: str, path: str) -> None:
    instance = await cell.get(INSTANCE, name)
    (interface,) = objects_at(instance, "status", "networkInterfaces")
    answer = await world.pods.ask(text_at(interface, "assignments", "networkIP"), path)
    assert answer, f"{name} does not answer"


@pytest.mark.spec("AS-02", "AS-03", "AS-04")
@scenario(NEEDS)
async def test_busy_containers_become_three_and_one_again_without_the_hub(world: World) -> None:
    cell, operator = await world.cell_of(DFW, world.project), world.operator_of(DFW)
    await operator.stop()
    await add_component(world.cell(DFW), COMPONENT)
    await operator.start(ON)
    await world.pods.measure_pods(DFW.name)
    placement = a_placement("default", "DFW", replicas=1)
    metrics: list[JsonValue] = [HALF]
    settings = object_at(placement, "scaleSettings")
    settings |= {"maxReplicas": 3, "metrics": metrics}
    await world.project.create(a_workload("web", placement))

    async def works() -> None:
        await _runs(cell, 1)
        active = condition_of(await cell.get(AUTOSCALER, WD), "ScalingActive")
        assert active.status == "True", active.message

    await world.eventually(works, MEASURED)
    # Claims of new slots are granted in the project, which is not cut off.
    await operator.cut(HUB)
    await world.backend.cut_member(DFW.name)
    for busy in (1, 2):
        name = f"{WD}-{busy - 1}"
        await world.eventually(partial(_ask, world, cell, name, "/burn"))
        await world.eventually(partial(_runs, cell, busy + 1), MEASURED)
    for number in range(2):
        await world.eventually(partial(_ask, world, cell, f"{WD}-{number}", "/rest"))
    await world.eventually(partial(_runs, cell, 1), MEASURED)
    await operator.heal(HUB)
    await world.backend.heal_member(DFW.name)

    async def is_shown() -> None:
        workload = await world.project.get(WORKLOAD, "web")
        assert object_at(workload, "status")["readyReplicas"] == 1

    await world.eventually(is_shown, MEASURED)
