"""The failures in a row of each key of one controller: the next retry, and one log line per reason.

Without it a key that fails every minute would log the same line every minute, and its back-off
would start over. A suspended project is no failure and never arrives here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from compute_operator_kit.controller.reconcile import ReconcileOutcome
from compute_operator_kit.core.backoff import Attempts, Retry, RetryPolicy, plan_retry
from compute_operator_kit.core.errors import (
    ForbiddenError,
    RejectedError,
    UnavailableError,
)
from compute_operator_kit.core.keys import ObjectKey

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _FailedKey:
    """The failures in a row of one key."""

    attempts: Attempts = field(default_factory=Attempts)
    reason: str = ""  # of the last failure, which was logged


class FailedKeys:
    """The failed keys of one controller."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._failed: dict[ObjectKey, _FailedKey] = {}

    def fail(self, key: ObjectKey, outcome: ReconcileOutcome, chance: float) -> Retry:
        """Counts and logs the failure of a reconcile; returns its retry."""
        before = self._failed.get(key, _FailedKey())
        retry = plan_retry(outcome.errors, before.attempts, self._policy, chance)
        _log(outcome, before)
        worst = outcome.worst
        reason = worst.reason if worst is not None else ""
        self._failed[key] = replace(before, attempts=retry.attempts, reason=reason)
        return retry

    def attempts_of(self, key: ObjectKey) -> Attempts:
        """The failures in a row so far."""
        return self._failed.get(key, _FailedKey()).attempts

    def succeed(self, key: ObjectKey) -> None:
        self._failed.pop(key, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        for key in [key for key in self._failed if is_gone(key)]:
            del self._failed[key]


def _log(outcome: ReconcileOutcome, before: _FailedKey) -> None:
    """Logs a failure once per reason; conflicts and throttling at debug level."""
    worst = outcome.worst
    if worst is None or outcome.is_bug:
        return
    level = logging.DEBUG
    if worst.reason != before.reason:
        if isinstance(worst, ForbiddenError):
            level = logging.ERROR
        elif isinstance(worst, RejectedError | UnavailableError):
            level = logging.WARNING
    logger.log(level, "Retrying", extra={"reason": worst.reason, "error": str(worst)})
