"""Outcomes of a plan: the effect of each intent, its error, and when to requeue. Pure.

A status is derived from them, so that it reports what was written and not what was planned.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum

import msgspec

from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.intents.intents import Intent, Plan, RecordEvent


class Effect(StrEnum):
    """The effect of one intent."""

    WRITTEN = "written"  # acknowledged by the plane, in this reconcile
    EQUAL = "equal"  # no request: the object is as desired
    HELD = "held"  # a provisional write that is deferred
    REFUSED = "refused"  # by a guard, or by the plane a moment ago
    SKIPPED = "skipped"  # the write that it depends on did not happen
    FAILED = "failed"
    NOTED = "noted"  # a `RequeueAfter`, or an Event given to the recorder


class Outcome(msgspec.Struct, frozen=True):
    """One intent with its effect."""

    intent: Intent
    effect: Effect
    reason: str = ""
    wait: timedelta | None = None
    error: ReconcileError | None = None


class Applied(msgspec.Struct, frozen=True):
    """The outcomes of a plan."""

    outcomes: tuple[Outcome, ...] = ()

    @property
    def errors(self) -> tuple[ReconcileError, ...]:
        """All errors, also of writes that were not sent again in this reconcile: for the status."""
        return tuple([outcome.error for outcome in self.outcomes if outcome.error is not None])

    @property
    def failures(self) -> tuple[ReconcileError, ...]:
        """The errors of requests of this reconcile: for the retry."""
        return tuple(
            [
                outcome.error
                for outcome in self.outcomes
                if outcome.error is not None and outcome.effect is Effect.FAILED
            ]
        )

    @property
    def wait(self) -> timedelta | None:
        """The shortest of all waits."""
        return soonest([outcome.wait for outcome in self.outcomes])

    @property
    def held(self) -> Plan:
        """The deferred writes, and the Events that depend on them."""
        waiting = [outcome.intent for outcome in self.outcomes if outcome.effect is Effect.HELD]
        if not waiting:
            return Plan()  # nearly always
        events = [
            outcome.intent
            for outcome in self.outcomes
            if isinstance(outcome.intent, RecordEvent) and outcome.intent.after in waiting
        ]
        return Plan((*waiting, *events))


def soonest(waits: Iterable[timedelta | None]) -> timedelta | None:
    """The shortest of the waits that are not None."""
    return min([wait for wait in waits if wait is not None], default=None)
