"""Answers to the POST of a Pod: which of them are verdicts about the Instance. Pure.

A Pod that breaks a rule of the cluster is the user's turn; a quota is a matter of room; a missing
right, a terminating namespace or a failing webhook is neither, and no condition may change for it
(api.md 8.1, rule 4).
"""

from __future__ import annotations

import re
from typing import Final

from compute_pod_provider.plan import PostResult

LONGEST_CAUSE: Final = 300
_PREFIX: Final = re.compile(r'^(?:pods?|Pod) "[^"]*" is (?:forbidden|invalid): ')
_NO_RIGHT: Final = re.compile(r'is forbidden: User "[^"]*" cannot ')
_TERMINATING: Final = "because it is being terminated"
_DENIED: Final = "denied the request"  # of a webhook or an admission policy
_QUOTA: Final = "exceeded quota"


def judge_answer(code: int, message: str) -> PostResult | None:
    """What an answer that is no success means for the Instance; None: nothing."""
    if code == 422:
        return PostResult.REFUSED
    if code == 403 and _QUOTA in message:
        return PostResult.QUOTA
    if code == 403 and not _NO_RIGHT.search(message) and _TERMINATING not in message:
        return PostResult.REFUSED
    if 400 <= code < 500 and _DENIED in message:
        return PostResult.REFUSED
    return None


def derive_cause(message: str) -> str:
    """The first line of a refusal, without the name of the Pod."""
    line = message.strip().partition("\n")[0]
    return _PREFIX.sub("", line)[:LONGEST_CAUSE]
