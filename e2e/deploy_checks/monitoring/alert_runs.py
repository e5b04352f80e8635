"""Runs an incident on simulated planes and records the scraped metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from e2e.backends.sim.scheduler import run_observed
from e2e.deploy_checks.monitoring.recording import ScrapeRecording
from e2e.deploy_checks.monitoring.rule_tests import Expected, Fired
from e2e.deploy_checks.monitoring.rules import load_scrape_interval
from e2e.deploy_checks.monitoring.scraping import Scraper
from e2e.world.port import Backend, Needs
from e2e.world.scenario import World


def fired(*alerts: str, stays: tuple[str, ...] = ()) -> Expected:
    """Alerts written as `ComputeHubDown critical`."""
    return Expected(
        *(frozenset(Fired(*one.split()) for one in all_of) for all_of in (alerts, stays))
    )


@dataclass(frozen=True, slots=True)
class AlertCase:
    """One incident, and the alerts it fires on each cluster."""

    body: Callable[[World], Awaitable[None]]
    needs: Needs
    expected: Mapping[str, Expected] = field(default_factory=dict[str, Expected])
    # Parts of oracle messages that the incident causes and that scenarios may not.
    breaks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.body.__name__


def record(story: AlertCase) -> Mapping[str, ScrapeRecording]:
    """A recording per cluster; raises if the incident or an unexpected oracle fails."""
    scraper = Scraper(load_scrape_interval())

    async def body(backend: Backend) -> None:
        await story.body(World(backend, story.needs))

    violations = run_observed(story.name, story.needs, body, scraper)
    unforeseen = [one for one in violations if not any(word in one for word in story.breaks)]
    if unforeseen:
        raise AssertionError("\n".join(unforeseen))
    return scraper.recordings
