"""Plays a story on simulated planes, scraped all the while."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from e2e.backends.port import Backend, Needs
from e2e.backends.sim.stage import play_seen
from e2e.monitoring.recording import Recording
from e2e.monitoring.rule_tests import Expected, Fired
from e2e.monitoring.rules import load_scrape_interval
from e2e.monitoring.scraping import Scraper
from e2e.world import World


def fired(*alerts: str, stays: tuple[str, ...] = ()) -> Expected:
    """Alerts written as `ComputeHubDown critical`."""
    return Expected(
        *(frozenset(Fired(*one.split()) for one in all_of) for all_of in (alerts, stays))
    )


@dataclass(frozen=True, slots=True)
class Story:
    """One kind of trouble: what happens, and what is raised on which cluster."""

    body: Callable[[World], Awaitable[None]]
    needs: Needs
    expected: Mapping[str, Expected] = field(default_factory=dict[str, Expected])
    # Words of oracles that its trouble brings about, and that no scenario may.
    breaks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.body.__name__


def record(story: Story) -> Mapping[str, Recording]:
    """A recording per cluster; fails where the story, or an oracle after it, does not hold."""
    scraper = Scraper(load_scrape_interval())

    async def body(backend: Backend) -> None:
        await story.body(World(backend, story.needs))

    violations = play_seen(story.name, story.needs, body, scraper)
    unforeseen = [one for one in violations if not any(word in one for word in story.breaks)]
    if unforeseen:
        raise AssertionError("\n".join(unforeseen))
    return scraper.recordings
