"""Spans of the provider: one per pass of an Instance, and their ids in the lines of that pass."""

from __future__ import annotations

import io
import json
import logging

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from provider_builders.cluster import INSTANCES, Cluster
from provider_builders.instances import NAME, a_new_instance, gone

from compute_operator_kit.telemetry.logs import JsonFormatter
from compute_operator_kit.telemetry.opentelemetry import build_tracing_to


async def test_every_pass_has_a_span_with_its_steps_and_its_lines_name_it(cluster: Cluster) -> None:
    exporter = InMemorySpanExporter()
    tracing = build_tracing_to(SimpleSpanProcessor(exporter), Resource({}), ratio=1)
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(JsonFormatter())
    watched = logging.getLogger("compute_pod_provider")
    watched.addHandler(handler)
    watched.setLevel(logging.INFO)
    try:
        async with cluster.provider(spans=tracing):
            await cluster.create(a_new_instance())
            await cluster.until_reason("Available")
            (await cluster.api.delete(f"{INSTANCES}/{NAME}")).expect(200)
            await gone(cluster)
    finally:
        watched.removeHandler(handler)
        watched.setLevel(logging.NOTSET)
    spans = exporter.get_finished_spans()
    passes = [span for span in spans if span.name == "reconcile pods"]
    assert passes
    outcomes: set[object] = set()
    for span in passes:
        attributes = dict(span.attributes or {})
        outcomes.add(attributes.pop("compute.outcome"))  # a conflict is repeated
        assert attributes == {
            "compute.plane": "@home",
            "compute.namespace": INSTANCES.split("/namespaces/")[1].split("/")[0],
            "compute.name": NAME,
        }
    assert "done" in outcomes
    identities = {span.context.span_id for span in passes if span.context}
    steps = [span for span in spans if span.name in {"observe", "plan", "apply"}]
    assert {span.name for span in steps} == {"observe", "plan", "apply"}
    assert all(span.parent and span.parent.span_id in identities for span in steps)
    traces = {format(span.context.trace_id, "032x") for span in passes if span.context}
    created = [
        line for line in map(json.loads, lines.getvalue().splitlines()) if "trace_id" in line
    ]
    assert created
    assert {line["trace_id"] for line in created} <= traces
