from __future__ import annotations

import http.server
import json
import logging
import sys
import threading
from collections.abc import Iterator
from io import StringIO

import pytest
from typing_extensions import override

from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config import loader
from compute_operator_kit.config.loader import find_warnings, validate_settings
from compute_operator_kit.config.optional_extras import (
    MISSING,
    TRACE_EXPORTER,
    find_missing_exporter,
)
from compute_operator_kit.config.settings import (
    API_VERSION,
    FederatedRoot,
    FederationSettings,
    TelemetrySettings,
)
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.telemetry import opentelemetry
from compute_operator_kit.telemetry.logs import JsonFormatter
from compute_operator_kit.telemetry.metrics_catalogue import (
    EVERY_METRIC,
    LATENCY_BUCKETS,
    MetricType,
)
from compute_operator_kit.telemetry.opentelemetry import (
    MetricsExporter,
    build_tracing,
    choose_metric_exporter,
)
from compute_operator_kit.telemetry.otlp import (
    build_resource,
)

pytest.importorskip(TRACE_EXPORTER, reason="the extra `otlp` is not installed")
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

FROM_ENVIRONMENT: dict[tuple[str, ...], tuple[str, str]] = {
    ("telemetry", "otlpEndpoint"): ("http://collector:4318", "OTEL_EXPORTER_OTLP_ENDPOINT")
}
KEY = ObjectKey(
    PlaneName("p1"),
    Kind("compute.datumapis.com", "v1alpha", "workloads", "Workload"),
    "team-a",
    "web",
)


class ExampleSettings(FederatedRoot):
    KIND = "ExampleConfig"

    federation: FederationSettings = FederationSettings(mode="none")

    @property
    @override
    def hub(self) -> FederationSettings:
        return self.federation


class Collector:
    """Receives OTLP over HTTP and keeps each request, parsed."""

    def __init__(self) -> None:
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/v1/traces":
                    outer.traces.append(ExportTraceServiceRequest.FromString(body))
                else:
                    outer.metrics.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            @override
            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    yield started
    started.close()


@pytest.fixture
def without_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (loader, opentelemetry):
        monkeypatch.setattr(module, "find_missing_exporter", lambda: MISSING)


def document(**telemetry_section: Json) -> JsonObject:
    return {"apiVersion": API_VERSION, "kind": "ExampleConfig", "telemetry": telemetry_section}


def test_an_import_that_fails_is_a_missing_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_missing_exporter() == ""

    monkeypatch.setitem(sys.modules, TRACE_EXPORTER, None)

    assert find_missing_exporter() == MISSING


@pytest.mark.usefixtures("without_exporter")
def test_a_file_that_names_an_endpoint_without_exporter_is_refused() -> None:
    with pytest.raises(ConfigurationError) as refused:
        validate_settings(ExampleSettings, document(otlpEndpoint="http://collector:4318"))

    assert str(refused.value) == f"telemetry.otlpEndpoint: {MISSING}"


@pytest.mark.usefixtures("without_exporter")
def test_an_endpoint_of_the_environment_without_exporter_is_a_warning() -> None:
    settings = validate_settings(ExampleSettings, document(), FROM_ENVIRONMENT)

    assert [str(warning) for warning in find_warnings(settings)] == [
        f"telemetry.otlpEndpoint: {MISSING}; nothing is exported"
    ]
    tracing = build_tracing(settings.telemetry, build_resource("x", "1"))
    with tracing.reconcile("workload", KEY):
        pass
    tracing.shut_down()
    assert choose_metric_exporter(settings.telemetry) is None


def test_an_endpoint_with_its_exporter_warns_of_nothing() -> None:
    settings = validate_settings(ExampleSettings, document(), FROM_ENVIRONMENT)

    assert find_warnings(settings) == []


def test_metrics_without_an_endpoint_are_refused_by_the_name_of_the_remedy() -> None:
    with pytest.raises(ConfigurationError) as refused:
        validate_settings(ExampleSettings, document(otlpMetrics=True))

    assert str(refused.value) == (
        "telemetry.otlpMetrics: needs telemetry.otlpEndpoint "
        "(OTEL_EXPORTER_OTLP_ENDPOINT does the same)"
    )
    validate_settings(ExampleSettings, document(otlpMetrics=True), FROM_ENVIRONMENT)


def test_the_resource_names_instance_namespace_and_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=platform,service.name=other")
    resource = build_resource(
        "compute-cell-operator",
        "1.2.3",
        instance="operator-0_ab12",
        namespace="compute-system",
        environ={"POD_NAME": "operator-0", "POD_NAMESPACE": "compute-system"},
    )

    wanted = {
        "service.name": "compute-cell-operator",
        "service.version": "1.2.3",
        "service.instance.id": "operator-0_ab12",
        "service.namespace": "platform",  # a platform's own word wins over what is derived
        "k8s.pod.name": "operator-0",
        "k8s.namespace.name": "compute-system",
    }
    assert wanted.items() <= dict(resource.attributes).items()


def test_outside_a_pod_the_resource_has_no_empty_attributes() -> None:
    attributes = build_resource("x", "1").attributes

    assert not [name for name in attributes if name.startswith("k8s.")]


def test_a_pass_reaches_the_collector_with_its_resource(collector: Collector) -> None:
    settings = TelemetrySettings(otlp_endpoint=collector.endpoint, trace_sample_ratio=1.0)
    tracing = build_tracing(settings, build_resource("x", "1", instance="x-0"))

    with tracing.reconcile("workload", KEY), tracing.step("plan"):
        pass
    tracing.shut_down()

    (request,) = collector.traces
    (received,) = request.resource_spans
    resource = {one.key: one.value.string_value for one in received.resource.attributes}
    assert resource["service.instance.id"] == "x-0"
    (scope,) = received.scope_spans
    assert [span.name for span in scope.spans] == ["plan", "reconcile workload"]


def test_every_metric_of_the_catalogue_reaches_the_collector(collector: Collector) -> None:
    settings = TelemetrySettings(otlp_endpoint=collector.endpoint, otlp_metrics=True)
    metrics = MetricsExporter("x", "1", exporter=choose_metric_exporter(settings))
    for metric in EVERY_METRIC:
        labels = dict.fromkeys(metric.labels, "x")
        match metric.type:
            case MetricType.COUNTER:
                metrics.measures.count(metric.name, 3, **labels)
            case MetricType.GAUGE:
                metrics.measures.gauge(metric.name, 4, **labels)
            case MetricType.HISTOGRAM:
                metrics.measures.observe(metric.name, 0.2, **labels)

    metrics.export()

    (request,) = collector.metrics
    received = {
        metric.name: metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert received.keys() == {metric.name for metric in EVERY_METRIC}
    (point,) = received["compute_projection_lag_seconds"].histogram.data_points
    assert (point.count, point.sum, list(point.explicit_bounds)) == (1, 0.2, [*LATENCY_BUCKETS])
    assert list(point.bucket_counts).index(1) == [b >= 0.2 for b in LATENCY_BUCKETS].index(True)
    assert not point.HasField("min")
    metrics.shut_down()
    assert len(collector.metrics) == 2  # what was counted since the last period is not lost


def test_metrics_are_exported_only_where_the_setting_asks_for_it(collector: Collector) -> None:
    settings = TelemetrySettings(otlp_endpoint=collector.endpoint)
    metrics = MetricsExporter("x", "1", exporter=choose_metric_exporter(settings))

    metrics.export()
    metrics.shut_down()

    assert not metrics.is_exported
    assert collector.metrics == []


def test_a_collector_that_is_away_does_not_stop_the_export_of_metrics() -> None:
    settings = TelemetrySettings(otlp_endpoint="http://127.0.0.1:9", otlp_metrics=True)
    metrics = MetricsExporter("x", "1", exporter=choose_metric_exporter(settings))

    metrics.export()

    assert b"compute_build_info" in metrics.render()


@pytest.mark.parametrize("ratio", [1.0, 0.0])
def test_lines_of_a_pass_carry_the_trace_that_is_sent_and_no_other(
    collector: Collector, ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = TelemetrySettings(otlp_endpoint=collector.endpoint, trace_sample_ratio=ratio)
    tracing = build_tracing(settings, build_resource("x", "1"))
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("test_otlp")
    monkeypatch.setattr(logger, "handlers", [handler])

    with tracing.reconcile("workload", KEY), tracing.step("plan"):
        logger.warning("Inside")
    logger.warning("Outside")
    tracing.shut_down()

    inside, outside = map(json.loads, stream.getvalue().splitlines())
    spans = [
        span
        for request in collector.traces
        for scope in request.resource_spans[0].scope_spans
        for span in scope.spans
        if span.name == "reconcile workload"
    ]
    sent = [(span.trace_id.hex(), span.span_id.hex()) for span in spans]
    assert ([(inside["trace_id"], inside["span_id"])] if ratio else []) == sent
    assert ("trace_id" in inside) is bool(ratio)
    assert "trace_id" not in outside
