"""OTLP over HTTP: the exporters of spans and metrics, and the resource that both name as source.

The exporter's libraries are imported only where an endpoint is set, so a process without telemetry
does not pay for their import.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from typing_extensions import override

from compute_operator_kit.telemetry.histograms import Histograms, Series

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

SPAN_TIMEOUT_SECONDS: Final = 5.0
# The last export of a process that stops waits as long; spans may have waited before it.
METRIC_TIMEOUT_SECONDS: Final = 2.0


def build_resource(
    component: str,
    version: str,
    *,
    instance: str = "",
    namespace: str = "",
    environ: Mapping[str, str] | None = None,
) -> Resource:
    """The resource of spans and metrics. `OTEL_RESOURCE_ATTRIBUTES` wins over derived attributes,
    and the component's name and version win over both.
    """
    variables = environ or {}
    derived = {
        "service.instance.id": instance,
        "service.namespace": namespace,
        "k8s.pod.name": variables.get("POD_NAME", ""),
        "k8s.namespace.name": variables.get("POD_NAMESPACE", ""),
    }
    present = {name: value for name, value in derived.items() if value}
    given = OTELResourceDetector().detect()
    named = Resource({"service.name": component, "service.version": version})
    return Resource.create().merge(Resource(present)).merge(given).merge(named)


def build_span_exporter(endpoint: str) -> SpanExporter:
    """`endpoint` is the collector's base URL, as OTEL_EXPORTER_OTLP_ENDPOINT defines it."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(
        endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=SPAN_TIMEOUT_SECONDS
    )


def build_metric_exporter(endpoint: str) -> MetricExporter:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter(
        endpoint=f"{endpoint.rstrip('/')}/v1/metrics", timeout=METRIC_TIMEOUT_SECONDS
    )


def build_metric_reader(
    exporter: MetricExporter, histograms: Histograms
) -> PeriodicExportingMetricReader:
    """A reader that exports when `collect` is called: the period is a task of the process."""
    return PeriodicExportingMetricReader(
        WithHistograms(exporter, histograms), export_interval_millis=math.inf
    )


class WithHistograms(MetricExporter):
    """Exports the metrics of the SDK together with our own histograms."""

    def __init__(self, exporter: MetricExporter, histograms: Histograms) -> None:
        super().__init__()
        self._exporter = exporter
        self._histograms = histograms
        self._started = time.time_ns()

    @override
    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        completed = self._complete(metrics_data)
        return self._exporter.export(completed, timeout_millis)  # pyright: ignore[reportUnknownMemberType]

    @override
    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    @override
    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        self._exporter.shutdown(timeout_millis)  # pyright: ignore[reportUnknownMemberType]

    def _complete(self, collected: MetricsData) -> MetricsData:
        first, *rest = collected.resource_metrics
        scope = ScopeMetrics(
            scope=InstrumentationScope(__name__), metrics=list(self._metrics()), schema_url=""
        )
        joined = ResourceMetrics(
            resource=first.resource,
            scope_metrics=[*first.scope_metrics, scope],
            schema_url=first.schema_url,
        )
        return MetricsData(resource_metrics=[joined, *rest])

    def _metrics(self) -> Iterator[Metric]:
        now = time.time_ns()
        for metric, series in self._histograms.read():
            points = [self._point(metric.buckets, one, now) for one in series]
            yield Metric(
                name=metric.name,
                description=metric.help,
                unit=None,
                data=Histogram(
                    data_points=points, aggregation_temporality=AggregationTemporality.CUMULATIVE
                ),
            )

    def _point(self, bounds: tuple[float, ...], series: Series, now: int) -> HistogramDataPoint:
        not_kept = cast("float", None)  # optional on the wire; the SDK's type has no such value
        return HistogramDataPoint(
            attributes=dict(series.labels),
            start_time_unix_nano=self._started,
            time_unix_nano=now,
            count=sum(series.buckets),
            sum=series.total,
            bucket_counts=series.buckets,
            explicit_bounds=bounds,
            min=not_kept,
            max=not_kept,
        )
