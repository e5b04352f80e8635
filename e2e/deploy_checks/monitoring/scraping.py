"""Scrapes the operators of a simulated run as Prometheus does, through their own exposition.

Metrics go through `compute_operator_kit.telemetry.opentelemetry` as in a real process, and the text
that `/metrics` would return is recorded. The home of each operator has its own Prometheus. A dead
or frozen process does not answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families
from typing_extensions import override

from compute_operator_kit.telemetry.opentelemetry import MetricsExporter
from compute_operator_kit.testing.fakes import FakeMetrics
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.processes import NAMESPACE, Process
from e2e.backends.sim.scheduler import NoObserver
from e2e.deploy_checks.monitoring.recording import ScrapeRecording, Series

VERSION = "0.0.0"


class ExposedMeasures(FakeMetrics):
    """Keeps values for scenarios and oracles, and exposes them as a process does."""

    def __init__(self, component: str) -> None:
        super().__init__()
        self.metrics = MetricsExporter(component, VERSION)

    @override
    def count(self, name: str, amount: int = 1, /, **labels: str) -> None:
        super().count(name, amount, **labels)
        self.metrics.measures.count(name, amount, **labels)

    @override
    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        super().gauge(name, value, **labels)
        self.metrics.measures.gauge(name, value, **labels)

    @override
    def observe(self, name: str, value: float, /, **labels: str) -> None:
        super().observe(name, value, **labels)
        self.metrics.measures.observe(name, value, **labels)


def parse_exposition(text: str, target: str) -> Iterator[tuple[Series, float]]:
    """Every sample of one scrape, with the target's labels."""
    context = {"instance": target, "job": "compute-metrics", "namespace": NAMESPACE, "pod": target}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted({**sample.labels, **context}.items()))
            yield Series(sample.name, labels), sample.value


@dataclass(slots=True)
class Scraper(NoObserver):
    """Observes one run; a recording per operator, by the scenario's name."""

    every: timedelta
    recordings: dict[str, ScrapeRecording] = field(default_factory=dict[str, ScrapeRecording])
    _made: list[ExposedMeasures] = field(default_factory=list[ExposedMeasures])

    @override
    def make_measures(self, component: str) -> FakeMetrics:
        made = ExposedMeasures(component)
        self._made.append(made)
        return made

    @asynccontextmanager
    @override
    async def observe(self, backend: SimBackend) -> AsyncGenerator[None]:
        scraping = asyncio.create_task(self._scrape_for_ever(backend), name="scraping")
        try:
            yield
        finally:
            scraping.cancel()
            await asyncio.wait({scraping})
            for measures in self._made:
                measures.metrics.shut_down()
        if not scraping.cancelled():
            scraping.result()

    async def _scrape_for_ever(self, backend: SimBackend) -> None:
        while True:
            for operator, replicas in backend.replicas.items():
                samples = [sample for process in replicas.alive for sample in _scrape(process)]
                self.recordings.setdefault(operator, ScrapeRecording()).add(dict(samples))
            await backend.sleep(self.every)


def _scrape(process: Process) -> Iterator[tuple[Series, float]]:
    measures = process.measures
    if not isinstance(measures, ExposedMeasures):
        raise TypeError(f"scraping {process.name}: it exposes nothing")
    if process.answers:
        yield from parse_exposition(measures.metrics.render().decode(), process.name)
