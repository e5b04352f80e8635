"""Which tests are scenarios, what each needs, and the order they run in on real planes.

Those that share come first, since they run together, on the operators as they ship before all
others; then those that run alone, the ones that need the operators in the same make after each
other. Pure, but for learning from a test what it plays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import pytest

from e2e.backends.port import Needs
from e2e.backends.real.stage import Noting, Planned
from e2e.backends.real.theatre import can_share, name_arrangement

Rank: TypeAlias = tuple[bool, bool, bool, str]


def learn(item: pytest.Item) -> Planned | None:
    """What a test would play; None where it is no scenario."""
    if not isinstance(item, pytest.Function) or "stage" not in item.fixturenames:
        return None
    noting = Noting()
    # A scenario's test takes a stage and nothing else (`e2e.world.scenario`).
    cast("Callable[[Noting], None]", item.obj)(noting)
    (planned,) = noting.noted
    return planned


def arrange(
    items: Sequence[pytest.Item], *, has_slow: bool
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Tests in the order to run, and those that are left out."""
    kept: list[tuple[Rank, pytest.Item]] = []
    left_out: list[pytest.Item] = []
    for item in items:
        planned = learn(item)
        if planned is None:
            kept.append(((False, False, False, ""), item))
        elif planned.needs.is_slow and not has_slow:
            left_out.append(item)
        else:
            kept.append((_rank(planned), item))
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])], left_out


def _rank(planned: Planned) -> Rank:
    needs, arrangement = planned.needs, name_arrangement(planned.needs)
    is_usual = arrangement == name_arrangement(Needs())
    return not can_share(needs), not is_usual, needs.is_slow, arrangement
