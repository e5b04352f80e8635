from __future__ import annotations

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from compute_operator_kit.telemetry.opentelemetry import build_tracing_to
from compute_operator_kit.telemetry.otlp import build_resource
from compute_operator_kit.telemetry.span_attributes import annotate_reconcile
from compute_operator_kit.testing.fakes import a_key


def test_attributes_stand_on_the_span_of_the_pass_and_empty_ones_nowhere() -> None:
    exporter = InMemorySpanExporter()
    tracing = build_tracing_to(
        SimpleSpanProcessor(exporter), build_resource("test", "1"), ratio=1.0
    )
    with tracing.reconcile("federation", a_key()):
        annotate_reconcile(city_code="DFW", hub_namespace="")
    (span,) = exporter.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["compute.city_code"] == "DFW"
    assert "compute.hub_namespace" not in span.attributes


def test_outside_a_pass_it_says_so_to_nobody() -> None:
    annotate_reconcile(city_code="DFW")
