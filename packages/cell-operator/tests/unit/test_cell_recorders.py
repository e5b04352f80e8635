"""Recorders of events by kind, and that a failing event never fails a reconcile (cell.md 14)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.process import EVENT_SOURCES
from compute_operator_kit.client.interface import AlreadyExists
from compute_operator_kit.core.errors import ForbiddenError
from compute_operator_kit.core.json import JsonMapping
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.intents.intents import RecordEvent
from compute_operator_kit.telemetry.event_recorders import EventRecorders
from compute_operator_kit.telemetry.events import EventClient, EventSource
from compute_operator_kit.testing.fakes import FakeClock


@dataclass(slots=True)
class Written:
    """Where events are written to; refuses them where `is_refusing`, after having seen them."""

    is_refusing: bool = False
    bodies: list[JsonMapping] = field(default_factory=list[JsonMapping])

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists:
        self.bodies.append(body)
        if self.is_refusing:
            raise ForbiddenError("Forbidden", f"creating {key}: the namespace is terminating")
        return AlreadyExists()

    async def patch_merge(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        raise AssertionError(f"nothing is repeated here: {key} {body}")


def an_event(kind: Kind, message: str = "hello") -> RecordEvent:
    namespace = "ns-1" if kind.namespaced else ""
    return RecordEvent(
        ObjectKey(CELL, kind, namespace, "web"), Uid("u-1"), "Scaled", message, "Acting"
    )


async def tell(port: EventClient | None, *emits: RecordEvent) -> None:
    def find(_: PlaneName) -> EventClient | None:
        return port

    own = EventSource("compute-cell-operator", "pod-1")
    recorders = EventRecorders.for_kinds(own, EVENT_SOURCES, find, FakeClock())
    running = [asyncio.create_task(recorder.run()) for recorder in recorders]
    for emit in emits:
        recorders.record(emit)
    for recorder in recorders:
        await recorder.drain()
    for task in running:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_each_kind_has_its_own_reporting_component() -> None:
    port = Written()
    await tell(port, an_event(INSTANCE), an_event(DEPLOYMENT), an_event(NAMESPACE))
    assert sorted(str(body["reportingComponent"]) for body in port.bodies) == [
        "compute-cell-operator",
        "instance-controller",
        "workloaddeployment-controller",
    ]


@pytest.mark.spec("C-84")
async def test_a_message_is_data_and_is_cut_on_a_character() -> None:
    port = Written()
    literal = "100 % of {braces} %s %(x)s"
    await tell(port, an_event(DEPLOYMENT, literal), an_event(INSTANCE, "é" * 1000))
    by_voice = {str(body["reportingComponent"]): str(body["message"]) for body in port.bodies}
    assert by_voice["workloaddeployment-controller"] == literal
    cut = by_voice["instance-controller"]
    assert cut.endswith("...")
    assert len(cut.encode()) <= 1024
    assert set(cut.removesuffix("...")) == {"é"}


@pytest.mark.spec("C-84")
async def test_refused_or_homeless_events_fail_nothing() -> None:
    port = Written(is_refusing=True)
    await tell(port, an_event(DEPLOYMENT))
    assert len(port.bodies) == 1
    await tell(None, an_event(DEPLOYMENT))
