"""Scrapes the operators of a simulated world as Prometheus does: by their own exposition.

Numbers go where a real process has them (`compute_operator_kit.telemetry.Metrics`), and what is
recorded is the text that `/metrics` would answer with. Each operator's home is a cluster with a
Prometheus of its own. A process that is dead or frozen answers nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families
from typing_extensions import override

from compute_operator_kit.telemetry import Metrics
from compute_operator_kit.testing import FakeMeasures
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.processes import NAMESPACE, Process
from e2e.monitoring.recording import Recording, Series

VERSION = "0.0.0"


class ExposedMeasures(FakeMeasures):
    """Remembers what scenarios and oracles ask for, and exposes it as a process does."""

    def __init__(self, component: str) -> None:
        super().__init__()
        self.metrics = Metrics(component, VERSION)

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
    """Every sample of one answer, with the labels that Prometheus gives its target."""
    around = {"instance": target, "job": "compute-metrics", "namespace": NAMESPACE, "pod": target}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted({**sample.labels, **around}.items()))
            yield Series(sample.name, labels), sample.value


@dataclass(slots=True)
class Scraper:
    """Looks on at one run; a recording per operator, named as in scenarios."""

    every: timedelta
    recordings: dict[str, Recording] = field(default_factory=dict[str, Recording])
    _made: list[ExposedMeasures] = field(default_factory=list[ExposedMeasures])

    def make_measures(self, component: str) -> FakeMeasures:
        made = ExposedMeasures(component)
        self._made.append(made)
        return made

    @asynccontextmanager
    async def look(self, backend: SimBackend) -> AsyncGenerator[None]:
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
            for operator, crew in backend.crews.items():
                found = [sample for process in crew.alive for sample in _scrape(process)]
                self.recordings.setdefault(operator, Recording()).add(dict(found))
            await backend.sleep(self.every)


def _scrape(process: Process) -> Iterator[tuple[Series, float]]:
    measures = process.measures
    if not isinstance(measures, ExposedMeasures):
        raise TypeError(f"scraping {process.name}: it exposes nothing")
    if process.answers:
        yield from parse_exposition(measures.metrics.render().decode(), process.name)
