"""What became of a plan: one outcome per intent, and when to look again. Pure values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum

import msgspec

from compute_operator_kit.errors import ReconcileError
from compute_operator_kit.intents import Emit, Intent, Plan


class Effect(StrEnum):
    """What happened to one intent."""

    WRITTEN = "written"  # acknowledged by the plane, in this pass
    EQUAL = "equal"  # nothing to send: it is so already
    HELD = "held"  # provisional: waits for more to say
    REFUSED = "refused"  # a guard said no, or the plane did a moment ago
    SKIPPED = "skipped"  # what it depends on did not happen
    FAILED = "failed"
    NOTED = "noted"  # a wait, or an event handed to the recorder


class Outcome(msgspec.Struct, frozen=True):
    """One intent and what happened."""

    intent: Intent
    effect: Effect
    reason: str = ""
    wait: timedelta | None = None
    error: ReconcileError | None = None


class Applied(msgspec.Struct, frozen=True):
    """A plan carried out, as far as it went."""

    outcomes: tuple[Outcome, ...] = ()

    @property
    def errors(self) -> tuple[ReconcileError, ...]:
        """What stands in the way, also where it was not tried again in this pass: for the
        status.
        """
        return tuple([found.error for found in self.outcomes if found.error is not None])

    @property
    def failures(self) -> tuple[ReconcileError, ...]:
        """What went wrong in this pass: for the retry."""
        return tuple(
            [
                found.error
                for found in self.outcomes
                if found.error is not None and found.effect is Effect.FAILED
            ]
        )

    @property
    def wait(self) -> timedelta | None:
        """The soonest of all waits."""
        return soonest([outcome.wait for outcome in self.outcomes])

    @property
    def held(self) -> Plan:
        """What waits for more to say, and the events that go with it."""
        waiting = [found.intent for found in self.outcomes if found.effect is Effect.HELD]
        if not waiting:
            return Plan()  # nearly always
        told = [
            found.intent
            for found in self.outcomes
            if isinstance(found.intent, Emit) and found.intent.after in waiting
        ]
        return Plan((*waiting, *told))

    def of(self, intent: Intent) -> Outcome | None:
        """What happened to an intent; the last time, should a plan hold equal ones."""
        return next((found for found in reversed(self.outcomes) if found.intent == intent), None)


def soonest(waits: Iterable[timedelta | None]) -> timedelta | None:
    """The shortest of the waits that there are."""
    return min([wait for wait in waits if wait is not None], default=None)
