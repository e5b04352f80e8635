"""A controller with workers of its own: its slow reconciles delay no other controller."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from simulated_operators.one_controller import HUB, SOON, START, THING, a_thing

from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.config.settings import ClientsSettings
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.controller.manager import Workers
from compute_operator_kit.controller.ports import OperatorPorts
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Reconcile, Watch
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.planes.engaged_plane import CachedKind, Plane
from compute_operator_kit.process.operator import Operator, OperatorSetup
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.time.clock import VirtualClock, run

LONG = timedelta(seconds=5)


def a_setup(name: str, reconcile: Reconcile, workers: Workers | None = None) -> ControllerSetup:
    controller = Controller(
        name=name,
        owner=FieldOwner(name, name),
        watches=(Watch(Role.HUB, THING),),
        reconcile=reconcile,
    )
    return ControllerSetup(controller, (CachedKind(Role.HUB, THING),), workers=workers)


def test_slow_reconciles_with_workers_of_their_own_delay_no_other_controller() -> None:
    ended: Counter[str] = Counter()

    async def main(clock: VirtualClock) -> None:
        server = SimulatedPlane("hub", PlaneParts(clock=clock, identities=clock.identities))

        def connect(plane: Plane, lane: FlowControl) -> KubeClient:
            config = RestConfig(plane.name, plane.role, server.connect(), lane)
            return HttpKubeClient(config, FieldOwner("x", "x"))

        async def wait(key: ObjectKey, work: ReconcileContext) -> Result:  # noqa: ARG001
            await clock.sleep(LONG)
            ended["slow"] += 1
            return Result()

        async def count(key: ObjectKey, work: ReconcileContext) -> Result:  # noqa: ARG001
            ended["fast"] += 1
            return Result()

        context = OperatorContext()
        setup = OperatorSetup(
            context=context,
            planes=(Plane(HUB, Role.HUB),),
            ready_plane=HUB,
            leader_controllers=(a_setup("fast", count), a_setup("slow", wait, Workers(2, 2))),
            workers=Workers(1, 1),
        )
        ports = OperatorPorts(connect=connect, clock=clock, random=clock.random("world"))
        operator = Operator(setup, ports, ClientsSettings())
        operator.start()
        leading = asyncio.create_task(operator.lead())
        await clock.sleep(SOON)
        for number in range(3):
            context.enqueue("slow", a_thing(f"thing-{number}"))
        for number in range(9):
            context.enqueue("fast", a_thing(f"thing-{number}"))
        with pytest.raises(InvariantError, match="there is no controller 'other'"):
            context.enqueue("other", a_thing("thing"))
        await clock.sleep(SOON)
        assert ended == {"fast": 9}
        await clock.sleep(LONG)
        assert ended == {"fast": 9, "slow": 2}, "two workers of its own"
        operator.stop()
        await leading
        assert ended == {"fast": 9, "slow": 3}, "a reconcile in flight may end"
        await operator.close()
        await server.close()

    run(main, seed=1, start=START)
