"""Metrics and traces with OpenTelemetry: the metrics port, the scrape text, one span per reconcile.

The scrape has exactly the names and labels of `metrics_catalogue.py`: without scope labels, target
info and units, which the exporter would add. A measurement that is not in the catalogue is dropped
with one warning, because telemetry must not raise in a reconcile. Counters and gauges are kept as
plain numbers until a scrape: a reconcile measures a dozen times. Durations are counted in
`histograms.py`. OTLP export (`otlp.py`) is optional; without an endpoint its library is not
imported and no span is made. The global providers are not used.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Final, TypeAlias

from opentelemetry import metrics, trace
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from prometheus_client import CollectorRegistry, generate_latest

from compute_operator_kit.config.optional_extras import find_missing_exporter
from compute_operator_kit.config.settings import TelemetrySettings
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.telemetry.histograms import Histograms
from compute_operator_kit.telemetry.logs import bound_keys
from compute_operator_kit.telemetry.metrics_catalogue import EVERY_METRIC, Metric, MetricType
from compute_operator_kit.telemetry.otlp import (
    build_metric_exporter,
    build_metric_reader,
    build_resource,
    build_span_exporter,
)

SCOPE: Final = "compute_operator_kit"
BUILD_INFO: Final = "compute_build_info"

_Labels: TypeAlias = Mapping[str, str]
_Series: TypeAlias = tuple[str | tuple[str, str], ...]  # the metric's name, then its labels

logger = logging.getLogger(__name__)


class _Sum:
    """The increments of one counter since the last flush. A zero is flushed once too, so that the
    series starts with it.
    """

    __slots__ = ("is_flushed", "labels", "name", "pending")

    def __init__(self, name: str, labels: _Labels) -> None:
        self.name, self.labels = name, labels
        self.pending = 0
        self.is_flushed = False

    def take(self) -> tuple[str, _Labels, int]:
        pending, self.pending, self.is_flushed = self.pending, 0, True
        return self.name, self.labels, pending


class OtelMetrics:
    """The metrics port on OpenTelemetry instruments and our own histograms.

    `flush` updates the instruments and must be called before they are read. Reconciles and
    admission call it from different threads.
    """

    def __init__(
        self,
        meter: metrics.Meter,
        histograms: Histograms,
        catalogue: Sequence[Metric] = EVERY_METRIC,
    ) -> None:
        self._labels = {metric.name: frozenset(metric.labels) for metric in catalogue}
        self._refused: set[str] = set()
        self._lock = Lock()
        self._flush_lock = Lock()  # so that an older gauge value does not overwrite a newer one
        self._sums: dict[_Series, _Sum] = {}  # of series that fit the catalogue
        self._gauge_values: dict[_Series, tuple[str, _Labels, float]] = {}
        self._histograms = histograms
        counters, gauges = (
            [metric for metric in catalogue if metric.type is kind]
            for kind in (MetricType.COUNTER, MetricType.GAUGE)
        )
        self._counters = {
            metric.name: meter.create_counter(metric.name, description=metric.help)
            for metric in counters
        }
        self._gauges = {
            metric.name: meter.create_gauge(metric.name, description=metric.help)
            for metric in gauges
        }
        for metric in counters:
            if not metric.labels:
                # A rate over a series that starts with its first event misses that event.
                self._counters[metric.name].add(0)

    def count(self, name: str, amount: int = 1, /, **labels: str) -> None:
        series: _Series = (name, *labels.items())
        with self._lock:
            counter = self._sums.get(series)
            if counter is None and name in self._counters and self._fits(name, labels):
                counter = self._sums[series] = _Sum(name, labels)
            if counter is not None and amount >= 0:
                counter.pending += amount
                counter.is_flushed = False
                return
        self._refuse(name)

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        if name not in self._gauges or not self._fits(name, labels):
            self._refuse(name)
            return
        with self._lock:
            self._gauge_values[(name, *labels.items())] = (name, labels, value)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        # A duration between two clocks may be negative.
        if not self._histograms.observe(name, max(0.0, value), labels):
            self._refuse(name)

    def flush(self) -> None:
        """Adds the pending values to the instruments."""
        with self._flush_lock:
            with self._lock:
                sums = [one.take() for one in self._sums.values() if not one.is_flushed]
                values, self._gauge_values = self._gauge_values, {}
            for name, labels, amount in sums:
                self._counters[name].add(amount, labels)
            for name, labels, value in values.values():
                self._gauges[name].set(value, labels)

    def _fits(self, name: str, labels: _Labels) -> bool:
        expected = self._labels[name]
        return len(labels) == len(expected) and expected.issuperset(labels)

    def _refuse(self, name: str) -> None:
        if name not in self._refused:
            self._refused.add(name)
            logger.warning(
                "Dropping measurement", extra={"metric": name, "reason": "NotInCatalogue"}
            )


class MetricsExporter:
    """All metrics of one process: the scrape text and, with an exporter, the OTLP export."""

    def __init__(
        self,
        component: str,
        version: str,
        catalogue: Sequence[Metric] = EVERY_METRIC,
        *,
        resource: Resource | None = None,
        exporter: MetricExporter | None = None,
    ) -> None:
        self._registry = CollectorRegistry()
        histograms = Histograms(
            metric for metric in catalogue if metric.type is MetricType.HISTOGRAM
        )
        scraped = PrometheusMetricReader(
            disable_target_info=True, scope_info_enabled=False, registry=self._registry
        )
        self._exported = None if exporter is None else build_metric_reader(exporter, histograms)
        self._provider = MeterProvider(
            metric_readers=[scraped] if self._exported is None else [scraped, self._exported],
            exemplar_filter=AlwaysOffExemplarFilter(),  # the text format has none
            resource=resource or build_resource(component, version),
            shutdown_on_exit=False,
        )
        self._registry.register(histograms)
        self.measures = OtelMetrics(self._provider.get_meter(SCOPE), histograms, catalogue)
        self.measures.gauge(BUILD_INFO, 1, component=component, version=version)

    @property
    def is_exported(self) -> bool:
        return self._exported is not None

    def render(self) -> bytes:
        """The metrics in the Prometheus text format."""
        self.measures.flush()
        return generate_latest(self._registry)

    def export(self) -> None:
        """Sends all metrics to the collector; blocks until it answers or the time is over."""
        if self._exported is not None:
            self.measures.flush()
            self._exported.collect()

    def shut_down(self) -> None:
        self.export()
        self.measures.flush()
        self._provider.shutdown()


class Tracing:
    """One span per reconcile with its steps below, named as in `operations.md` 8.

    Without a tracer no spans are made. No trace context is stored in objects: traces are joined by
    plane, namespace, name and UID.
    """

    def __init__(
        self, tracer: trace.Tracer | None = None, provider: TracerProvider | None = None
    ) -> None:
        self._tracer = tracer
        self._provider = provider

    def reconcile(
        self, controller: str, key: ObjectKey
    ) -> AbstractContextManager[OtelReconcileSpan]:
        if self._tracer is None:
            return _NO_RECONCILE
        return self._reconcile(self._tracer, controller, key)

    def step(self, name: str) -> AbstractContextManager[None]:
        """A child span: `observe`, `plan`, `apply`, or one request."""
        if self._tracer is None:
            return _NO_STEP
        return self._step(self._tracer, name)

    @contextmanager
    def _reconcile(
        self, tracer: trace.Tracer, controller: str, key: ObjectKey
    ) -> Generator[OtelReconcileSpan]:
        attributes = {
            "compute.plane": str(key.plane),
            "compute.namespace": key.namespace,
            "compute.name": key.name,
        }
        with self._span(tracer, f"reconcile {controller}", attributes) as span:
            context = span.get_span_context()
            if not context.trace_flags.sampled:  # its id would lead to no trace
                yield OtelReconcileSpan(span)
                return
            # The names of OpenTelemetry for logs in other formats.
            trace_id, span_id = format(context.trace_id, "032x"), format(context.span_id, "016x")
            with bound_keys(trace_id=trace_id, span_id=span_id):
                yield OtelReconcileSpan(span)

    @contextmanager
    def _step(self, tracer: trace.Tracer, name: str) -> Generator[None]:
        with self._span(tracer, name, {}):
            yield

    @contextmanager
    def _span(
        self, tracer: trace.Tracer, name: str, attributes: Mapping[str, str]
    ) -> Generator[trace.Span]:
        """A span of one block, marked as failed if that raises; without the text of the error."""
        with tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            is_done = False
            try:
                yield span
                is_done = True
            finally:
                if not is_done:
                    span.set_status(trace.StatusCode.ERROR)

    def shut_down(self) -> None:
        """Sends pending spans, within the exporter's timeout."""
        if self._provider is not None:
            self._provider.shutdown()


class OtelReconcileSpan:
    """The span of one reconcile."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set_uid(self, uid: str) -> None:
        self._span.set_attribute("compute.uid", uid)

    def set_outcome(self, outcome: str) -> None:
        self._span.set_attribute("compute.outcome", outcome)

    def set_attribute(self, name: str, value: str) -> None:
        """Sets an attribute of a controller, such as `compute.city_code`."""
        self._span.set_attribute(name, value)


_NO_RECONCILE: Final = nullcontext(OtelReconcileSpan(trace.INVALID_SPAN))
_NO_STEP: Final = nullcontext()


def build_tracing(settings: TelemetrySettings, resource: Resource) -> Tracing:
    """Tracing to the configured endpoint; without one no spans are recorded."""
    if not settings.otlp_endpoint or find_missing_exporter():
        return Tracing()
    processor = BatchSpanProcessor(build_span_exporter(settings.otlp_endpoint))
    return build_tracing_to(processor, resource, ratio=settings.trace_sample_ratio)


def build_tracing_to(processor: SpanProcessor, resource: Resource, *, ratio: float) -> Tracing:
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(ratio)), resource=resource, shutdown_on_exit=False
    )
    provider.add_span_processor(processor)
    return Tracing(provider.get_tracer(SCOPE), provider)


def choose_metric_exporter(settings: TelemetrySettings) -> MetricExporter | None:
    """The exporter of metrics, if it is configured and installed."""
    if not settings.otlp_metrics or not settings.otlp_endpoint or find_missing_exporter():
        return None
    return build_metric_exporter(settings.otlp_endpoint)
