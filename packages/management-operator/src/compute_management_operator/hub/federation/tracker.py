"""What federation remembers between reconciles; a restart may lose all of it. No I/O.

Situations with their beginning; the city of a deleted copy, of which the policy is deleted next;
names with a possible left-over binding; and the repairs of the labels of each hub namespace within
the last hour, without which two writers of one label would overwrite each other for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

from compute_api_types import reasons
from compute_management_operator.hub.delays import REPAIR_WINDOW
from compute_management_operator.hub.federation.leftover_bindings import LeftoverBindings
from compute_management_operator.hub.federation.observe import FederationMemory, ObservedDeployment
from compute_management_operator.hub.hearing.verdicts import NOT_JUDGED, Hearing
from compute_management_operator.hub.identity import IdentityMatch, match_identity
from compute_management_operator.hub.wait_tracker import WaitTracker
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Delete, Ensure, Plan
from compute_operator_kit.intents.outcomes import Applied, Effect

REPAIRS: Final = 3  # management.md 4, step 6: at most 3 times within `REPAIR_WINDOW`
HELD_BY: Final = ("hub_away", "identity", "unresolved", "waiting")
HELD_BY_SITUATION: Final = {
    reasons.HUB_IDENTITY_CONFLICT: "identity",
    reasons.FEDERATION_NAMESPACE_UNRESOLVED: "unresolved",
}


class FederationTracker:
    """The memory of the federation controller of one process."""

    def __init__(self, clock: Clock, operator: ObjectKey) -> None:
        self.waits = WaitTracker()
        self.leftovers = LeftoverBindings(clock)
        self._clock = clock
        self._operator = operator
        self._codes: dict[ObjectKey, str] = {}
        self._repairs: dict[str, list[timedelta]] = {}
        self._held: dict[ObjectKey, str] = {}

    def known(
        self, key: ObjectKey, hub_name: str, hearing: Hearing = NOT_JUDGED
    ) -> FederationMemory:
        return FederationMemory(
            since=self.waits.of(key),
            deleted_code=self._codes.get(key, ""),
            repairs_left=REPAIRS - len(self._recent(hub_name)),
            operator=self._operator,
            hearing=hearing,
        )

    def note(self, seen: ObservedDeployment, plans: Iterable[Plan], applied: Applied) -> None:
        """A reconcile ended."""
        plans = tuple(plans)
        self.waits.note(seen.key, plans, self._clock.now())
        self._note_held(seen)
        if _is_placed(seen):
            self._codes.pop(seen.key, None)
        for outcome in applied.outcomes:
            if outcome.effect is Effect.WRITTEN:
                self._note_written(seen, outcome.intent)

    def _note_written(self, seen: ObservedDeployment, intent: object) -> None:
        match intent:
            case Delete(key=key) if key == seen.copy_key and not isinstance(seen.copy, Absent):
                self._codes[seen.key] = seen.copy.routed_to
            case Ensure(key=key) if key == seen.hub_namespace_key:
                self._note_hub_namespace(seen)
            case _:
                pass

    def _note_hub_namespace(self, seen: ObservedDeployment) -> None:
        if isinstance(seen.hub_namespace, Absent):
            self.leftovers.note_made(seen.hub_name)
        elif match_identity(seen.hub_namespace, seen.project_namespace) is IdentityMatch.FOREIGN:
            self._repairs.setdefault(seen.hub_name, []).append(self._clock.monotonic())

    def _note_held(self, seen: ObservedDeployment) -> None:
        """Which finalizers are held, and for which reason."""
        situations = self.waits.of(seen.key)
        if reasons.TERMINATING not in situations:
            self._held.pop(seen.key, None)
            return
        known = (HELD_BY_SITUATION.get(one) for one in situations)
        self._held[seen.key] = next((held for held in known if held), "waiting")

    def note_hub_away(self, key: ObjectKey, *, is_deleting: bool) -> None:
        """The hub did not answer: its outage is no situation of the deployment."""
        self.waits.end(key)
        if is_deleting:
            self._held[key] = "hub_away"

    def count_held(self) -> dict[str, int]:
        counts: Counter[str] = Counter(self._held.values())
        return {held: counts[held] for held in HELD_BY}

    def end(self, key: ObjectKey) -> None:
        """The key has nothing to reconcile."""
        self.waits.end(key)
        self._codes.pop(key, None)
        self._held.pop(key, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        self.waits.forget(is_gone)
        for key in [key for key in (*self._codes, *self._held) if is_gone(key)]:
            self.end(key)

    def _recent(self, hub_name: str) -> list[timedelta]:
        begin = self._clock.monotonic() - REPAIR_WINDOW
        recent = [at for at in self._repairs.pop(hub_name, []) if at > begin]
        if recent:
            self._repairs[hub_name] = recent
        return recent


def _is_placed(seen: ObservedDeployment) -> bool:
    """Whether a copy of the right city exists, or the deployment does not: the city of a copy that
    was deleted before is needed no more.
    """
    if isinstance(seen.deployment, Absent) or isinstance(seen.copy, Absent):
        return isinstance(seen.deployment, Absent)
    return seen.copy.routed_to == seen.deployment.city_code
