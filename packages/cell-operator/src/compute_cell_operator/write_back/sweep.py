"""Which copies have no Instance behind them any more, and what is said when too many would go.
Pure (cell.md 12).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_api_types import reasons
from compute_operator_kit.intents import Emit, Plan, Wait
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.mass_delete import FEWEST, LARGEST_SHARE, Held

Place: TypeAlias = tuple[str, str]  # namespace, name
SWEEPING: Final = "Sweeping"


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Copies whose Instance is not there, of all that were looked at."""

    missing: frozenset[Place]
    total: int

    @property
    def is_large(self) -> bool:
        """More than one finding may remove at once (faults.md D9)."""
        return len(self.missing) >= FEWEST and len(self.missing) > LARGEST_SHARE * self.total


def find_leftovers(
    copies: Iterable[Place],
    instances: AbstractSet[Place],
    seen_going: AbstractSet[Place] = frozenset(),
) -> Leftovers:
    """`seen_going` were seen to be deleted: their absence is no inference and needs no guard."""
    looked_at = [place for place in copies if place not in seen_going]
    missing = frozenset(place for place in looked_at if place not in instances)
    return Leftovers(missing, len(looked_at))


def plan_refusal(key: ObjectKey, held: Held, operator: ObjectKey) -> Plan:
    """Nothing is removed now; told once per finding."""
    waits = Plan.of(Wait(key, reasons.MASS_DELETE_REFUSED, held.wait))
    if not held.is_news:
        return waits
    message = (
        f"{held.missing} of {held.total} copies on the hub have no Instance in this cell; "
        "they are removed if a second look says the same"
    )
    told = Emit(operator, Uid(""), reasons.MASS_DELETE_REFUSED, message, SWEEPING, type="Warning")
    return Plan.of(told) + waits
