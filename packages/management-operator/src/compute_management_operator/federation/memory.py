"""What federation remembers between passes; all of it may be lost in a crash. No I/O.

Situations and since when; the city of a copy that was deleted, for the policy that goes with it;
where a binding may be left over; and how often the labels of a hub namespace were put back within
the last hour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

from compute_api_types import reasons
from compute_management_operator.episodes import Episodes
from compute_management_operator.federation.leftovers import Leftovers
from compute_management_operator.federation.observe import Known, Seen
from compute_management_operator.identities import Standing, judge_standing
from compute_operator_kit.clock import Clock
from compute_operator_kit.intents import Delete, Ensure, Plan
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent
from compute_operator_kit.outcomes import Applied, Effect

REPAIRS: Final = 3  # management.md 4, step 6: at most 3 times an hour
WINDOW: Final = timedelta(hours=1)
HELD_BY: Final = ("hub_away", "identity", "unresolved", "waiting")
HELD_BY_SITUATION: Final = {
    reasons.HUB_IDENTITY_CONFLICT: "identity",
    reasons.FEDERATION_NAMESPACE_UNRESOLVED: "unresolved",
}


class Memory:
    """Of one process."""

    def __init__(self, clock: Clock, operator: ObjectKey) -> None:
        self.episodes = Episodes()
        self.leftovers = Leftovers(clock)
        self._clock = clock
        self._operator = operator
        self._codes: dict[ObjectKey, str] = {}
        self._repairs: dict[str, list[timedelta]] = {}
        self._held: dict[ObjectKey, str] = {}

    def known(self, key: ObjectKey, hub_name: str) -> Known:
        return Known(
            since=self.episodes.of(key),
            deleted_code=self._codes.get(key, ""),
            repairs_left=REPAIRS - len(self._recent(hub_name)),
            operator=self._operator,
        )

    def note(self, seen: Seen, plans: Iterable[Plan], applied: Applied) -> None:
        """A pass ended."""
        plans = tuple(plans)
        self.episodes.note(seen.key, plans, self._clock.now())
        self._note_held(seen)
        if _is_placed(seen):
            self._codes.pop(seen.key, None)
        for outcome in applied.outcomes:
            if outcome.effect is Effect.WRITTEN:
                self._note_written(seen, outcome.intent)

    def _note_written(self, seen: Seen, intent: object) -> None:
        match intent:
            case Delete(key=key) if key == seen.copy_key and not isinstance(seen.copy, Absent):
                self._codes[seen.key] = seen.copy.routed_to
            case Ensure(key=key) if key == seen.hub_namespace_key:
                self._note_hub_namespace(seen)
            case _:
                pass

    def _note_hub_namespace(self, seen: Seen) -> None:
        if isinstance(seen.hub_namespace, Absent):
            self.leftovers.note_made(seen.hub_name)
        elif judge_standing(seen.hub_namespace, seen.place) is Standing.FOREIGN:
            self._repairs.setdefault(seen.hub_name, []).append(self._clock.monotonic())

    def _note_held(self, seen: Seen) -> None:
        """Which finalizers are held, and by what."""
        situations = self.episodes.of(seen.key)
        if reasons.TERMINATING not in situations:
            self._held.pop(seen.key, None)
            return
        known = (HELD_BY_SITUATION.get(one) for one in situations)
        self._held[seen.key] = next((held for held in known if held), "waiting")

    def note_hub_away(self, key: ObjectKey, *, is_going: bool) -> None:
        """An outage is no situation of the deployment's."""
        self.episodes.end(key)
        if is_going:
            self._held[key] = "hub_away"

    def count_held(self) -> dict[str, int]:
        counts: Counter[str] = Counter(self._held.values())
        return {held: counts[held] for held in HELD_BY}

    def end(self, key: ObjectKey) -> None:
        """There is nothing to look at under this key."""
        self.episodes.end(key)
        self._codes.pop(key, None)
        self._held.pop(key, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        self.episodes.forget(is_gone)
        for key in [key for key in (*self._codes, *self._held) if is_gone(key)]:
            self.end(key)

    def _recent(self, hub_name: str) -> list[timedelta]:
        begin = self._clock.monotonic() - WINDOW
        recent = [at for at in self._repairs.pop(hub_name, []) if at > begin]
        if recent:
            self._repairs[hub_name] = recent
        return recent


def _is_placed(seen: Seen) -> bool:
    """Whether a copy of the right city is there; what went before it matters no more."""
    if isinstance(seen.deployment, Absent) or isinstance(seen.copy, Absent):
        return isinstance(seen.deployment, Absent)
    return seen.copy.routed_to == seen.deployment.city_code
