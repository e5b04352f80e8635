"""The order of scenarios in a session on real planes, by what each needs.

Scenarios that share the operators come first, those on unchanged settings before all others; then
those that run alone, grouped by equal operators. Each change of group costs a restart of the
operators. Pure, except that a test is called to learn its scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import pytest

from e2e.backends.real.environment import can_share, name_arrangement
from e2e.backends.real.scheduler import CollectingScheduler, PlannedScenario
from e2e.world.port import Needs

Rank: TypeAlias = tuple[bool, bool, bool, str]


def read_planned(item: pytest.Item) -> PlannedScenario | None:
    """The scenario of a test, or None."""
    if not isinstance(item, pytest.Function) or "scheduler" not in item.fixturenames:
        return None
    noting = CollectingScheduler()
    # A scenario's test has the scheduler as its only argument (`e2e.world.scenario.scenario`).
    cast("Callable[[CollectingScheduler], None]", item.obj)(noting)
    (planned,) = noting.noted
    return planned


def order_items(
    items: Sequence[pytest.Item], *, has_slow: bool
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests in the order to run, and the deselected ones."""
    kept: list[tuple[Rank, pytest.Item]] = []
    left_out: list[pytest.Item] = []
    for item in items:
        planned = read_planned(item)
        if planned is None:
            kept.append(((False, False, False, ""), item))
        elif planned.needs.is_slow and not has_slow:
            left_out.append(item)
        else:
            kept.append((_rank(planned), item))
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])], left_out


def _rank(planned: PlannedScenario) -> Rank:
    needs, arrangement = planned.needs, name_arrangement(planned.needs)
    is_usual = arrangement == name_arrangement(Needs())
    return not can_share(needs), not is_usual, needs.is_slow, arrangement
