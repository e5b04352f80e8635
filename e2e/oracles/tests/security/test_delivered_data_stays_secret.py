"""A marker in a Secret that is delivered is found nowhere but in Secrets (referenced-data.md 8).

One life with every operation on referenced data, at DEBUG and with each reconcile traced: logs,
objects, metrics and requests are searched by the oracle of every run, spans and the output of
`kubectl compute` here.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typing_extensions import override

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.telemetry.opentelemetry import OtelReconcileSpan, build_tracing_to
from compute_operator_kit.telemetry.otlp import build_resource
from compute_sim_planes.faults.plans import FaultPlan
from compute_sim_planes.history import Commit, History
from compute_sim_planes.reconcile_trace import ReconcileSpan, ReconcileTrace
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.scheduler import NoObserver, run_once
from e2e.oracles.leaks import SECRET, has_canary, leaks_in_history
from e2e.oracles.testing import HistoryBuilder, an_object
from e2e.world.components import deliver_data
from e2e.world.documents import a_document, a_placement, a_template, a_workload
from e2e.world.kinds import SECRET as SECRETS
from e2e.world.kinds import WORKLOAD
from e2e.world.objects import condition_of, object_at
from e2e.world.port import ADMIN, DFW, HUB, ORD, Backend, Needs
from e2e.world.recorded.reading import DELETING, RUNNING, read_recording
from e2e.world.scenario import World, within

NEEDS: Final = Needs(cells=(DFW, ORD), has_quota=True, reads_data=True)


class TracedReconciles(ReconcileTrace):
    """The trace of a run, and the spans of the shipped tracing beside it."""

    def __init__(self, history: History, exporter: InMemorySpanExporter) -> None:
        super().__init__(history)
        processor = SimpleSpanProcessor(exporter)
        self._tracing = build_tracing_to(processor, build_resource("e2e", "0"), ratio=1)

    @contextmanager
    @override
    def reconcile(self, controller: str, key: object) -> Generator[ReconcileSpan]:
        assert isinstance(key, ObjectKey)
        traced, recorded = self._tracing.reconcile(controller, key), super().reconcile
        with traced as span, recorded(controller, key):
            yield BothSpans(self.history, controller, str(key), span)

    @contextmanager
    @override
    def step(self, name: str) -> Generator[None]:
        with self._tracing.step(name), super().step(name):
            yield


@dataclass(frozen=True, slots=True)
class BothSpans(ReconcileSpan):
    """One reconcile in both."""

    traced: OtelReconcileSpan

    @override
    def set_outcome(self, outcome: str) -> None:
        ReconcileSpan.set_outcome(self, outcome)
        self.traced.set_outcome(outcome)


@dataclass(slots=True)
class TracingObserver(NoObserver):
    """Keeps the spans of all processes."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)

    @override
    def make_spans(self, history: History) -> ReconcileTrace:
        return TracedReconciles(history, self.exporter)


def a_marked_secret(name: str, version: int = 1, **members: JsonValue) -> JsonObject:
    value = base64.b64encode(f"{SECRET}cret-{name}-{version}".encode()).decode()
    data: JsonObject = {"password": value}
    return {**a_document(SECRETS, name), "type": "Opaque", "data": data, **members}


def a_naming_template(*secrets: str, tag: str = "1.0") -> JsonObject:
    template = a_template(tag)
    sources: list[JsonValue] = [{"secretRef": {"name": name}} for name in secrets]
    (container,) = _containers(template)
    container["envFrom"] = sources
    return template


def _containers(template: JsonObject) -> list[JsonObject]:
    containers = object_at(template, "spec", "runtime", "sandbox")["containers"]
    assert isinstance(containers, list)
    return [one for one in containers if isinstance(one, dict)]


def a_naming_workload(*secrets: str) -> JsonObject:
    workload = a_workload("web", a_placement("default", "DFW", "ORD", replicas=1))
    object_at(workload, "spec")["template"] = a_naming_template(*secrets)
    return workload


async def live(world: World) -> None:
    """Delivered, edited, replaced, missing, unsupported, taken, restarted, withdrawn, deleted."""
    project = world.project
    await deliver_data(world)
    hub = await world.hub_of(project)
    for name in ("db", "later"):
        await project.create(a_marked_secret(name))
    await project.create(a_naming_workload("db"))

    async def is_ready() -> None:
        assert condition_of(await project.get(WORKLOAD, "web"), "Ready").status == "True"

    await world.eventually(is_ready, within(120))
    await project.patch(SECRETS, "db", {"data": a_marked_secret("db", 2)["data"]})
    restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
    await project.patch(WORKLOAD, "web", {"spec": {"template": restart}})
    await world.sleep(30)
    await world.eventually(is_ready, within(120))
    await project.delete(SECRETS, "later")
    await project.create(a_marked_secret("later", 2, type="example.com/other"))
    token = a_marked_secret("token", type="bootstrap.kubernetes.io/token")
    await project.create(token)
    await hub.create(a_marked_secret("taken"))
    for secrets in (("db", "later"), ("db", "absent"), ("db", "token"), ("db", "taken")):
        change: JsonObject = {"spec": {"template": a_naming_template(*secrets, tag="2.0")}}
        await project.patch(WORKLOAD, "web", change)
        await world.sleep(60)
    shown = await world.compute("why", "web", user=ADMIN)
    assert "Workload" in shown.output
    assert not has_canary(shown.output)
    await project.delete(SECRETS, "db")
    await world.sleep(60)
    await hub.delete(SECRETS, "taken")
    await project.delete(WORKLOAD, "web")
    await world.sleep(60)


@pytest.mark.spec("RD-20")
@pytest.mark.fault("S12")
def test_a_marker_of_a_delivered_secret_is_found_in_secrets_alone() -> None:
    observer = TracingObserver()

    async def body(backend: Backend) -> None:
        assert isinstance(backend, SimBackend)
        await live(World(backend, NEEDS))

    backend, violations = run_once(FaultPlan("delivered_secrets", 1), NEEDS, body, observer)
    assert violations == []
    carried = {one.plane for one in backend.history.of(Commit) if has_canary(str(one.after))}
    assert {HUB, DFW.name, ORD.name} <= carried, "the marker was never delivered"
    spans = observer.exporter.get_finished_spans()
    names = {span.name for span in spans}
    assert {"reconcile referenced-data", "reconcile instance", "apply"} <= names
    leaks = [span.name for span in spans if has_canary(span.to_json())]
    assert leaks == []


@pytest.mark.fault("S12")
def test_only_a_work_of_karmada_may_hold_a_secret() -> None:
    script = HistoryBuilder()
    held = {"manifest": f"{SECRET}cret-of-web"}
    script.write("karmada", "hub", an_object("Work", "karmada-es-dfw-1/web-1", spec={**held}))
    assert leaks_in_history(script.history) == []
    script.write("karmada", "hub", an_object("Work", "shop/web-1", spec={**held}))
    assert leaks_in_history(script.history) == ["S12: Work shop/web-1 on hub holds a canary"]


@pytest.mark.spec("RD-20")
@pytest.mark.parametrize("name", [RUNNING, DELETING])
def test_recordings_have_no_secret(name: str) -> None:
    recorded = read_recording(name).objects
    kinds = {str(one.get("kind")) for objects in recorded.values() for one in objects}
    assert "WorkloadDeployment" in kinds
    assert "Secret" not in kinds
    assert not has_canary(json.dumps(recorded))
