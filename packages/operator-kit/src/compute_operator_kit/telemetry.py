"""Metrics and traces: the port `Measures` on OpenTelemetry, the text a scrape gets, and one span
per pass.

The exposition has exactly the names and labels of `metrics_catalogue.py`: the exporter is told to
add no scope labels and no target, and instruments carry no unit, which it would append. A
measurement that does not fit the catalogue is dropped and said once, because telemetry never
raises. What is measured is gathered in plain numbers and handed to the library when somebody asks:
a pass measures a dozen times, and a scrape comes every few seconds; durations are counted into
buckets at once (`histograms.py`). Exporting over OTLP (`otlp.py`) is optional and its library is
imported only when an endpoint is configured; without one no span is made. Builds providers of its
own; the global ones stay untouched.
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

from compute_operator_kit.histograms import Histograms
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.logs import bound_keys
from compute_operator_kit.metrics_catalogue import EVERY_METRIC, Metric, MetricType
from compute_operator_kit.otlp import (
    build_metric_exporter,
    build_metric_reader,
    build_resource,
    build_span_exporter,
    find_missing_exporter,
)
from compute_operator_kit.settings import TelemetrySettings

SCOPE: Final = "compute_operator_kit"
BUILD_INFO: Final = "compute_build_info"

_Labels: TypeAlias = Mapping[str, str]
_Series: TypeAlias = tuple[str | tuple[str, str], ...]  # the metric's name, then its labels

logger = logging.getLogger(__name__)


class _Sum:
    """What one counter is owed; none too is told once, so that its series begins with it."""

    __slots__ = ("is_told", "labels", "name", "owed")

    def __init__(self, name: str, labels: _Labels) -> None:
        self.name, self.labels = name, labels
        self.owed = 0
        self.is_told = False

    def take(self) -> tuple[str, _Labels, int]:
        owed, self.owed, self.is_told = self.owed, 0, True
        return self.name, self.labels, owed


class OtelMeasures:
    """The port `Measures`: OpenTelemetry instruments made from a catalogue, and our histograms.

    `flush` brings the instruments up to date; who reads them calls it before. Reconciling and
    admission measure from threads of their own.
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
        self._turn = Lock()  # of handing on: a level must not be overtaken by an older one
        self._sums: dict[_Series, _Sum] = {}  # of series that fit the catalogue
        self._levels: dict[_Series, tuple[str, _Labels, float]] = {}
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
                # A rate over a series that begins with its first event misses that event.
                self._counters[metric.name].add(0)

    def count(self, name: str, amount: int = 1, /, **labels: str) -> None:
        series: _Series = (name, *labels.items())
        with self._lock:
            found = self._sums.get(series)
            if found is None and name in self._counters and self._fits(name, labels):
                found = self._sums[series] = _Sum(name, labels)
            if found is not None and amount >= 0:
                found.owed += amount
                found.is_told = False
                return
        self._refuse(name)

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        if name not in self._gauges or not self._fits(name, labels):
            self._refuse(name)
            return
        with self._lock:
            self._levels[(name, *labels.items())] = (name, labels, value)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        # Two clocks may disagree about which moment came first; a duration is never negative.
        if not self._histograms.observe(name, max(0.0, value), labels):
            self._refuse(name)

    def flush(self) -> None:
        """Hands on what was gathered."""
        with self._turn:
            with self._lock:
                sums = [one.take() for one in self._sums.values() if not one.is_told]
                levels, self._levels = self._levels, {}
            for name, labels, amount in sums:
                self._counters[name].add(amount, labels)
            for name, labels, level in levels.values():
                self._gauges[name].set(level, labels)

    def _fits(self, name: str, labels: _Labels) -> bool:
        wanted = self._labels[name]
        return len(labels) == len(wanted) and wanted.issuperset(labels)

    def _refuse(self, name: str) -> None:
        if name not in self._refused:
            self._refused.add(name)
            logger.warning(
                "Dropping measurement", extra={"metric": name, "reason": "NotInCatalogue"}
            )


class Metrics:
    """All metrics of one process: their exposition and, with an exporter, their export."""

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
            exemplar_filter=AlwaysOffExemplarFilter(),  # a scrape's text has no place for any
            resource=resource or build_resource(component, version),
            shutdown_on_exit=False,
        )
        self._registry.register(histograms)
        self.measures = OtelMeasures(self._provider.get_meter(SCOPE), histograms, catalogue)
        self.measures.gauge(BUILD_INFO, 1, component=component, version=version)

    @property
    def is_exported(self) -> bool:
        return self._exported is not None

    def render(self) -> bytes:
        """What a scrape gets, in Prometheus' text format."""
        self.measures.flush()
        return generate_latest(self._registry)

    def export(self) -> None:
        """Sends every metric to the collector, and blocks until it answers or the time is over."""
        if self._exported is not None:
            self.measures.flush()
            self._exported.collect()

    def shut_down(self) -> None:
        self.export()
        self.measures.flush()
        self._provider.shutdown()


class Tracing:
    """One span per pass with its steps below, as `operations.md` 8 names them.

    Without a tracer spans are not even made. No trace context is stored in objects: plane,
    namespace, name and UID are what traces can be joined by.
    """

    def __init__(
        self, tracer: trace.Tracer | None = None, provider: TracerProvider | None = None
    ) -> None:
        self._tracer = tracer
        self._provider = provider

    def reconcile(self, controller: str, key: ObjectKey) -> AbstractContextManager[PassSpan]:
        if self._tracer is None:
            return _NO_PASS
        return self._reconcile(self._tracer, controller, key)

    def step(self, name: str) -> AbstractContextManager[None]:
        """A child of the pass: `observe`, `plan`, `apply`, or one request."""
        if self._tracer is None:
            return _NO_STEP
        return self._step(self._tracer, name)

    @contextmanager
    def _reconcile(
        self, tracer: trace.Tracer, controller: str, key: ObjectKey
    ) -> Generator[PassSpan]:
        attributes = {
            "compute.plane": str(key.plane),
            "compute.namespace": key.namespace,
            "compute.name": key.name,
        }
        with self._span(tracer, f"reconcile {controller}", attributes) as span:
            context = span.get_span_context()
            if not context.trace_flags.sampled:  # an id of a trace that is never sent leads nowhere
                yield PassSpan(span)
                return
            # The names of OpenTelemetry for logs in other formats than its own.
            trace_id, span_id = format(context.trace_id, "032x"), format(context.span_id, "016x")
            with bound_keys(trace_id=trace_id, span_id=span_id):
                yield PassSpan(span)

    @contextmanager
    def _step(self, tracer: trace.Tracer, name: str) -> Generator[None]:
        with self._span(tracer, name, {}):
            yield

    @contextmanager
    def _span(
        self, tracer: trace.Tracer, name: str, attributes: Mapping[str, str]
    ) -> Generator[trace.Span]:
        """A span that ends with its block, marked when that failed; the error's text stays out of
        it.
        """
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
        """Sends what is left, for a moment at most."""
        if self._provider is not None:
            self._provider.shutdown()


class PassSpan:
    """The span of one pass, to which what is learnt on the way is added."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set_uid(self, uid: str) -> None:
        self._span.set_attribute("compute.uid", uid)

    def set_outcome(self, outcome: str) -> None:
        self._span.set_attribute("compute.outcome", outcome)

    def set_attribute(self, name: str, value: str) -> None:
        """Attributes a controller adds, such as `compute.city_code`."""
        self._span.set_attribute(name, value)


_NO_PASS: Final = nullcontext(PassSpan(trace.INVALID_SPAN))
_NO_STEP: Final = nullcontext()


def build_tracing(settings: TelemetrySettings, resource: Resource) -> Tracing:
    """Tracing to the configured endpoint; recording nothing without one."""
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
    """The exporter of metrics, where settings ask for one and it is installed."""
    if not settings.otlp_metrics or not settings.otlp_endpoint or find_missing_exporter():
        return None
    return build_metric_exporter(settings.otlp_endpoint)
