from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client.parser import text_string_to_metric_families

from compute_operator_kit.config.settings import TelemetrySettings
from compute_operator_kit.core import metrics as names
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.telemetry.metrics_catalogue import (
    EVERY_METRIC,
    LATENCY_BUCKETS,
    QUOTA_WAIT_BUCKETS,
    Metric,
    MetricType,
)
from compute_operator_kit.telemetry.opentelemetry import (
    MetricsExporter,
    Tracing,
    build_tracing,
    build_tracing_to,
)
from compute_operator_kit.telemetry.otlp import build_resource

OPERATIONS = Path(__file__).parents[5] / "docs" / "spec" / "operations.md"
GATE_WAITS = {"compute_quota_wait_seconds", "compute_referenced_data_gate_wait_seconds"}
RESOURCE = build_resource("x", "1")
WORKLOAD = Kind("compute.datumapis.com", "v1alpha", "workloads", "Workload")


def spell_out(pattern: str) -> list[str]:
    """`a_{b,c}` means `a_b` and `a_c`."""
    found = re.fullmatch(r"([a-z_]*)\{([a-z_,]+)\}([a-z_]*)", pattern)
    if not found:
        return [pattern]
    return [f"{found[1]}{middle}{found[3]}" for middle in found[2].split(",")]


def read_specified() -> dict[str, set[str] | None]:
    """Names in section 6 of the specification, with their labels where it states them."""
    section = OPERATIONS.read_text("utf-8").split("\n## 6. Metrics\n")[1].split("\n## 7.")[0]
    specified: dict[str, set[str] | None] = {}
    for code in re.findall(r"`([a-z][a-z0-9_{},]*)`", section):
        # A brace group at the end are labels if a metric's name can stand before it, else
        # spellings.
        found = re.fullmatch(r"([a-z0-9_]+(?:\{[a-z_,]+\}[a-z_]*)?)\{([a-z,]+)\}", code)
        pattern, labels = (found[1], set(found[2].split(","))) if found else (code, None)
        if pattern.endswith("_"):
            pattern, labels = code, None
        for name in spell_out(pattern):
            if name.startswith(
                ("compute_", "controller_", "workqueue_", "leader_", "certw", "rest_")
            ):
                specified[name] = labels
    return specified


def touch(metrics: MetricsExporter, metric: Metric) -> None:
    labels = dict.fromkeys(metric.labels, "x")
    match metric.type:
        case MetricType.COUNTER:
            metrics.measures.count(metric.name, 1, **labels)
        case MetricType.GAUGE:
            metrics.measures.gauge(metric.name, 1, **labels)
        case MetricType.HISTOGRAM:
            metrics.measures.observe(metric.name, 0.2, **labels)


@pytest.fixture
def scraped() -> str:
    metrics = MetricsExporter("x", "x")
    for metric in EVERY_METRIC:
        touch(metrics, metric)
    return metrics.render().decode()


def test_the_catalogue_has_exactly_the_names_of_the_specification() -> None:
    specified = read_specified()

    assert len(specified) > 50
    assert {metric.name for metric in EVERY_METRIC} == specified.keys()


def test_labels_are_those_of_the_specification_where_it_states_them() -> None:
    specified = read_specified()
    stated = {name: labels for name, labels in specified.items() if labels is not None}
    found = {metric.name: set(metric.labels) for metric in EVERY_METRIC}

    assert len(stated) > 20
    assert {name: found[name] for name in stated} == stated


def test_a_scrape_gives_exactly_the_names_types_and_labels_of_the_catalogue(scraped: str) -> None:
    found = {}
    for family in text_string_to_metric_families(scraped):
        suffix = "_total" if family.type == "counter" else ""
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[family.name + suffix] = (family.type, labels)

    assert found == {
        metric.name: (metric.type.value, set(metric.labels)) for metric in EVERY_METRIC
    }


def test_no_sample_has_a_name_nobody_asked_for(scraped: str) -> None:
    sampled = {
        re.split(r"[{ ]", line)[0] for line in scraped.splitlines() if not line.startswith("#")
    }
    wanted = set[str]()
    for metric in EVERY_METRIC:
        is_histogram = metric.type is MetricType.HISTOGRAM
        wanted |= (
            {f"{metric.name}_{part}" for part in ("bucket", "sum", "count")}
            if is_histogram
            else {metric.name}
        )

    assert sampled == wanted


@pytest.mark.parametrize("metric", [m for m in EVERY_METRIC if m.buckets], ids=lambda m: m.name)
def test_histograms_have_the_buckets_of_the_specification(scraped: str, metric: Metric) -> None:
    bounds = re.findall(rf'^{metric.name}_bucket{{.*?le="([^"]+)".*?}}', scraped, re.MULTILINE)

    wanted = QUOTA_WAIT_BUCKETS if metric.name in GATE_WAITS else LATENCY_BUCKETS
    assert [float(bound) for bound in bounds] == [*wanted, float("inf")]


def test_latency_buckets_are_spelled_as_in_the_specification() -> None:
    text = OPERATIONS.read_text("utf-8")
    stated = re.search(r"Latency buckets ([0-9. ]+); waits at gates up to (\d+)", text)
    assert stated

    assert [float(bound) for bound in stated[1].split()] == list(LATENCY_BUCKETS)
    assert QUOTA_WAIT_BUCKETS[-1] == float(stated[2])


def test_every_name_the_hot_path_reports_is_in_the_catalogue() -> None:
    reported = {value for name, value in vars(names).items() if name.isupper()}

    assert len(reported) > 15
    assert reported <= {metric.name for metric in EVERY_METRIC}


def test_counters_without_labels_begin_at_zero() -> None:
    text = MetricsExporter("x", "x").render().decode()

    assert "\ncertwatcher_read_certificate_errors_total 0.0\n" in text


def test_build_info_is_there_from_the_start() -> None:
    text = MetricsExporter("compute-cell-operator", "1.2.3").render().decode()

    assert 'compute_build_info{component="compute-cell-operator",version="1.2.3"} 1.0' in text


def test_a_measurement_that_does_not_fit_is_dropped_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = MetricsExporter("x", "x")
    before = metrics.render()

    for _ in range(3):
        metrics.measures.count("no_such_metric_total")
        metrics.measures.gauge("workqueue_depth", 1, name="q")
        metrics.measures.observe("compute_writes_total", 1.0)

    assert metrics.render() == before
    assert [record.__dict__["metric"] for record in caplog.records] == [
        "no_such_metric_total",
        "workqueue_depth",
        "compute_writes_total",
    ]


def test_a_duration_is_never_negative() -> None:
    metrics = MetricsExporter("x", "x")

    metrics.measures.observe("compute_projection_lag_seconds", -5.0)

    assert "compute_projection_lag_seconds_sum 0.0" in metrics.render().decode()


def test_what_was_measured_between_two_scrapes_is_told_once() -> None:
    metrics = MetricsExporter("x", "x")
    name, labels = "rest_client_requests_total", {"code": "200", "method": "GET", "host": "hub"}

    for amount in (1, 2):
        metrics.measures.count(name, amount, **labels)
        metrics.measures.gauge("compute_federation_policies", amount)
    scraped = metrics.render().decode()
    again = metrics.render().decode()

    series = f'{name}{{code="200",host="hub",method="GET"}}'
    assert f"{series} 3.0" in scraped
    assert f"{series} 3.0" in again
    assert "compute_federation_policies 2.0" in scraped


def test_labels_that_only_trade_their_values_are_two_series() -> None:
    metrics = MetricsExporter("x", "x")
    name = "rest_client_requests_total"

    metrics.measures.count(name, code="a", method="b", host="hub")
    metrics.measures.count(name, method="a", code="b", host="hub")

    text = metrics.render().decode()
    assert f'{name}{{code="a",host="hub",method="b"}} 1.0' in text
    assert f'{name}{{code="b",host="hub",method="a"}} 1.0' in text


def test_a_duration_counts_in_every_bucket_that_holds_it() -> None:
    metrics = MetricsExporter("x", "x")
    bound = LATENCY_BUCKETS[2]

    for value in (bound, LATENCY_BUCKETS[-1] + 1):
        metrics.measures.observe("compute_projection_lag_seconds", value)

    text = metrics.render().decode()
    found = re.findall(r'compute_projection_lag_seconds_bucket{le="(.*)"} (.*)', text)
    counts = {float(le): float(count) for le, count in found}
    assert counts == {
        **{le: 0.0 if le < bound else 1.0 for le in LATENCY_BUCKETS},
        float("inf"): 2.0,
    }


def test_nothing_that_two_threads_measure_is_lost() -> None:
    metrics = MetricsExporter("x", "x")

    def measure() -> None:
        for _ in range(2000):
            metrics.measures.count("compute_stale_sync_skips_total", controller="workload")
            metrics.measures.observe("compute_projection_lag_seconds", 1.0)

    threads = [threading.Thread(target=measure) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        metrics.render()
    for thread in threads:
        thread.join()

    text = metrics.render().decode()
    assert 'compute_stale_sync_skips_total{controller="workload"} 4000.0' in text
    assert "compute_projection_lag_seconds_count 4000.0" in text


def test_two_operators_in_one_process_do_not_share_metrics() -> None:
    one, other = MetricsExporter("x", "x"), MetricsExporter("x", "x")

    one.measures.gauge("compute_federation_policies", 7)

    assert "compute_federation_policies 7.0" in one.render().decode()
    assert "compute_federation_policies" not in other.render().decode()


def trace_a_pass(tracing: Tracing) -> None:
    key = ObjectKey(PlaneName("p1"), WORKLOAD, "team-a", "web")
    with tracing.reconcile("workload", key) as span:
        span.set_uid("u-1")
        for step in ("observe", "plan", "apply"):
            with tracing.step(step):
                pass
        span.set_outcome("success")


def test_a_pass_is_one_span_with_its_steps_below() -> None:
    exporter = InMemorySpanExporter()
    tracing = build_tracing_to(SimpleSpanProcessor(exporter), RESOURCE, ratio=1.0)

    trace_a_pass(tracing)

    *steps, whole = exporter.get_finished_spans()
    assert whole.name == "reconcile workload"
    assert dict(whole.attributes or {}) == {
        "compute.plane": "p1",
        "compute.namespace": "team-a",
        "compute.name": "web",
        "compute.uid": "u-1",
        "compute.outcome": "success",
    }
    assert [step.name for step in steps] == ["observe", "plan", "apply"]
    assert whole.context is not None
    assert {step.parent.span_id for step in steps if step.parent} == {whole.context.span_id}
    tracing.shut_down()


def test_a_pass_that_fails_ends_its_span_and_keeps_the_error_out_of_it() -> None:
    exporter = InMemorySpanExporter()
    tracing = build_tracing_to(SimpleSpanProcessor(exporter), RESOURCE, ratio=1.0)

    with pytest.raises(ValueError, match="c4n4ry"), tracing.step("apply"):
        raise ValueError("c4n4ry")

    (span,) = exporter.get_finished_spans()
    assert "c4n4ry" not in span.to_json()
    assert span.status.status_code is StatusCode.ERROR
    tracing.shut_down()


def test_without_an_endpoint_nothing_is_recorded() -> None:
    tracing = build_tracing(TelemetrySettings(), RESOURCE)

    trace_a_pass(tracing)
    tracing.shut_down()


def test_the_exporter_is_imported_only_for_an_endpoint() -> None:
    program = (
        "import sys\n"
        "from compute_operator_kit.config.settings import TelemetrySettings\n"
        "from compute_operator_kit.telemetry.otlp import build_resource\n"
        "from compute_operator_kit.telemetry.opentelemetry import build_tracing\n"
        "build_tracing(TelemetrySettings(), build_resource('x', '1'))\n"
        "print('opentelemetry.exporter.otlp' in sys.modules, 'kubernetes' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False False\n"


def test_an_endpoint_that_is_away_does_not_hurt() -> None:
    exporter = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
    pytest.importorskip(exporter, reason="the extra `otlp` is not installed")
    settings = TelemetrySettings(otlp_endpoint="http://127.0.0.1:9", trace_sample_ratio=1.0)
    tracing = build_tracing(settings, RESOURCE)

    trace_a_pass(tracing)
    tracing.shut_down()
