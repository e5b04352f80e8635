"""Which objects of projects state `CellUnreachable` now, as their last reconciles have left them.

A new process reconciles every object once, so that the sets are complete after a start. They are
also what has to be enqueued when a process gets its first verdict of a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compute_api_types import reasons
from compute_management_operator.hub.hearing.verdicts import NOT_JUDGED, Hearing
from compute_management_operator.stored_status import StoredCondition
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.intents.intents import SetStatus
from compute_operator_kit.intents.outcomes import Applied, Effect

_STORED: frozenset[Effect] = frozenset({Effect.WRITTEN, Effect.EQUAL})


class DarkObjects:
    """Keys of one controller."""

    def __init__(self) -> None:
        self._keys: set[ObjectKey] = set()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def keys(self) -> tuple[ObjectKey, ...]:
        return tuple(self._keys)

    def note(self, key: ObjectKey, applied: Applied, stored: Iterable[StoredCondition]) -> None:
        """A reconcile ended; `stored` are the conditions it began with."""
        is_dark = any(one.reason == reasons.CELL_UNREACHABLE for one in stored)
        for outcome in applied.outcomes:
            if isinstance(outcome.intent, SetStatus) and outcome.effect in _STORED:
                is_dark = _is_stated(outcome.intent)
        if is_dark:
            self._keys.add(key)
        else:
            self._keys.discard(key)

    def drop(self, key: ObjectKey) -> None:
        self._keys.discard(key)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        self._keys = {key for key in self._keys if not is_gone(key)}


class CellHearing:
    """The verdicts of this process, for federation and projection, and what both have shown."""

    def __init__(self) -> None:
        self.current: Hearing = NOT_JUDGED
        self.deployments = DarkObjects()
        self.instances = DarkObjects()


def _is_stated(intent: SetStatus) -> bool:
    entries = intent.status.get("conditions")
    return isinstance(entries, list) and any(
        isinstance(one, dict) and one.get("reason") == reasons.CELL_UNREACHABLE for one in entries
    )
