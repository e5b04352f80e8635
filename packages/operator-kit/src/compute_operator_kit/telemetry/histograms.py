"""Histograms of durations: a Prometheus collector beside the OpenTelemetry instruments.

Each reconcile records several durations. OpenTelemetry takes a dozen microseconds for each and
accepts no values that are counted already (`docs/performance.md`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, TypeAlias

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from compute_operator_kit.telemetry.metrics_catalogue import Metric

_SeriesKey: TypeAlias = tuple[str | tuple[str, str], ...]  # the metric's name, then its labels


@dataclass(frozen=True, slots=True)
class Series:
    """A copy of one series for exporters; counts per bucket are not cumulative."""

    labels: Mapping[str, str]
    buckets: tuple[int, ...]
    total: float


class _Counts:
    """The counts of one series."""

    __slots__ = ("bounds", "buckets", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds: Final = bounds
        self.buckets = [0] * (len(bounds) + 1)  # the last one has no bound
        self.total = 0.0


class _Family:
    """One histogram of the catalogue."""

    __slots__ = ("labels", "metric", "series")

    def __init__(self, metric: Metric) -> None:
        self.metric: Final = metric
        self.labels: Final = tuple(sorted(metric.labels))
        self.series: Final[dict[tuple[str, ...], _Counts]] = {}

    def find(self, labels: Mapping[str, str]) -> _Counts:
        values = tuple([labels[name] for name in self.labels])
        counts = self.series.get(values)
        if counts is None:
            counts = self.series[values] = _Counts(self.metric.buckets)
        return counts

    def read(self) -> list[Series]:
        return [
            Series(dict(zip(self.labels, values, strict=True)), tuple(counts.buckets), counts.total)
            for values, counts in self.series.items()
        ]

    def show(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(self.metric.name, self.metric.help, labels=self.labels)
        bounds = [*map(str, self.metric.buckets), "+Inf"]
        for values, counts in self.series.items():
            so_far, buckets = 0, list[tuple[str, float]]()
            for bound, count in zip(bounds, counts.buckets, strict=True):
                so_far += count
                buckets.append((bound, so_far))
            family.add_metric(values, buckets, counts.total)
        return family


class Histograms(Collector):
    """All histograms of one process."""

    def __init__(self, catalogue: Iterable[Metric]) -> None:
        self._families = {metric.name: _Family(metric) for metric in catalogue}
        # The series again by name and labels in the order of the caller: a faster lookup.
        self._by_call: dict[_SeriesKey, _Counts] = {}
        self._lock = Lock()  # reconciles and admission run in different threads

    def observe(self, name: str, value: float, labels: Mapping[str, str]) -> bool:
        """Counts a value; False if the catalogue has no such metric with these labels."""
        series_key: _SeriesKey = (name, *labels.items())
        with self._lock:
            counts = self._by_call.get(series_key)
            if counts is None:
                family = self._families.get(name)
                if family is None or {*family.labels} != {*labels}:
                    return False
                counts = self._by_call[series_key] = family.find(labels)
            counts.buckets[bisect_left(counts.bounds, value)] += 1
            counts.total += value
        return True

    def read(self) -> list[tuple[Metric, list[Series]]]:
        """The series of all histograms that have any."""
        with self._lock:
            return [
                (family.metric, family.read())
                for family in self._families.values()
                if family.series
            ]

    @override
    def collect(self) -> Iterator[HistogramMetricFamily]:
        with self._lock:
            shown = [family.show() for family in self._families.values() if family.series]
        yield from shown
