"""Durations, counted into buckets where they are measured, and shown to a scrape.

The one kind of measurement that is made several times in every pass. OpenTelemetry takes a dozen
microseconds for each value and offers no way to hand on what is counted already, so this is a
collector of the registry's own kind beside it
(ADR `docs/adr/20261116-durations-are-counted-where-they-are-measured.md`).
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

from compute_operator_kit.metrics_catalogue import Metric

_Spelled: TypeAlias = tuple[str | tuple[str, str], ...]  # the metric's name, then its labels


@dataclass(frozen=True, slots=True)
class Series:
    """A copy of one series, for exporters: counts per bucket, not cumulative."""

    labels: Mapping[str, str]
    buckets: tuple[int, ...]
    total: float


class _Counts:
    """One series."""

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
        found = self.series.get(values)
        if found is None:
            found = self.series[values] = _Counts(self.metric.buckets)
        return found

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
        # The same series once more, as callers spell them: a pass measures three times.
        self._spelled: dict[_Spelled, _Counts] = {}
        self._lock = Lock()  # reconciling and admission measure from threads of their own

    def observe(self, name: str, value: float, labels: Mapping[str, str]) -> bool:
        """False, and nothing is counted, where the catalogue has no such series."""
        spelled: _Spelled = (name, *labels.items())
        with self._lock:
            counts = self._spelled.get(spelled)
            if counts is None:
                family = self._families.get(name)
                if family is None or {*family.labels} != {*labels}:
                    return False
                counts = self._spelled[spelled] = family.find(labels)
            counts.buckets[bisect_left(counts.bounds, value)] += 1
            counts.total += value
        return True

    def read(self) -> list[tuple[Metric, list[Series]]]:
        """All series of every histogram that has one."""
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
