"""Builds the operator from ports; a simulation and a process differ only in what they pass in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compute_operator_kit.apply.desk import AlwaysLeading, Leadership, Means, NoRecorder, Recorder
from compute_operator_kit.backoff import RetryPolicy
from compute_operator_kit.cache import Caches
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.intents import Plan
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.lane import Limits
from compute_operator_kit.manager import Manager, Runtime, Workers
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.planes import Connect, Plane, Planes, Setting, Watched
from compute_operator_kit.reconcile import NoSpans, Pass, Result, Spans, run_steps
from example_operator.mirror import observe, status
from example_operator.mirror.observe import Seen
from example_operator.mirror.plan import plan
from example_operator.notes import HUB, NOTE, WRITER


class MirrorSteps:
    """The three files of the folder, as the kit calls them."""

    def observe(self, key: ObjectKey, caches: Caches) -> Seen | None:
        return observe.observe(key, caches)

    def plan(self, seen: Seen, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        return plan(seen)

    def report(self, seen: Seen, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return status.report(seen, applied)


async def reconcile(key: ObjectKey, work: Pass) -> Result:
    return await run_steps(MirrorSteps(), key, work)


WATCHED = (
    Watched(Role.PROJECT, NOTE),
    Watched(Role.HUB, NOTE, indexes={"plane": observe.index_by_plane}),
)


@dataclass(frozen=True, slots=True)
class Ports:
    """What the operator is given."""

    connect: Connect
    clock: Clock
    random: Random
    leadership: Leadership = field(default_factory=AlwaysLeading)
    recorder: Recorder = field(default_factory=NoRecorder)
    measures: Measures = field(default_factory=NoMeasures)
    spans: Spans = field(default_factory=NoSpans)
    limits: Limits = field(default_factory=Limits)
    workers: Workers = field(default_factory=lambda: Workers(total=8, per_share=2))
    resync: timedelta = timedelta(minutes=30)
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class Operator:
    """The mirror, wired: planes to engage, and a manager to run."""

    def __init__(self, ports: Ports) -> None:
        setting = Setting(
            clock=ports.clock, random=ports.random, measures=ports.measures, limits=ports.limits
        )
        self.planes = Planes(ports.connect, WATCHED, setting)
        means = Means(
            planes=self.planes,
            clock=ports.clock,
            leadership=ports.leadership,
            recorder=ports.recorder,
        )
        runtime = Runtime(
            means=means,
            random=ports.random,
            measures=ports.measures,
            spans=ports.spans,
            workers=ports.workers,
        )
        self.manager = Manager([_controller(ports)], runtime)

    def start(self) -> None:
        self.engage_hub()

    async def lead(self) -> None:
        await self.manager.run()

    def stop(self) -> None:
        self.manager.stop()

    def engage_hub(self) -> None:
        self.planes.engage(Plane(HUB, Role.HUB))

    def engage_project(self, name: str, uid: str = "") -> None:
        self.planes.engage(Plane(PlaneName(name), Role.PROJECT, uid=uid))

    async def close(self) -> None:
        await self.planes.close()


def _controller(ports: Ports) -> Controller:
    return Controller(
        name=WRITER.controller,
        writer=WRITER,
        watches=(
            Watch(Role.PROJECT, NOTE),
            Watch(Role.HUB, NOTE, observe.map_copy),
        ),
        reconcile=reconcile,
        on_engaged=_on_engaged,
        resync=ports.resync,
        retry=ports.retry,
        dropped_metric="compute_federation_dropped_events_total",
    )


def _on_engaged(plane: PlaneName, caches: Caches) -> tuple[ObjectKey, ...]:
    if plane == HUB or HUB not in caches.planes(Role.HUB):
        return ()
    return tuple(observe.wake_copies(plane, caches))
