"""What a found claim is worth; pure.

The order of the questions is the safety of the whole library: whose is it, is it going, is it the
one that is wanted, and only then what the quota service says. A claim that differs in any field can
never be a grant.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from compute_quota_client._verdicts import (
    Denied,
    Foreign,
    Granted,
    Invalid,
    Mismatch,
    MismatchField,
    Pending,
    Releasing,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compute_quota_client._models import Claim, FoundClaim


def judge(found: FoundClaim, wanted: Claim | None = None) -> Verdict:
    """The verdict on `found`, compared with `wanted` or, without it, by itself.

    By itself a claim is never `Foreign`, and `Mismatch` only for its `allocations`.
    """
    if wanted is None:
        return judge_identity(found, owner={}, subject={})
    return _judge(found, wanted.owner, _differing(found, wanted))


def judge_identity(
    found: FoundClaim, *, owner: Mapping[str, str], subject: Mapping[str, str]
) -> Verdict:
    """The verdict with owner and subject compared and the rest judged by itself, as an adoption
    needs it.
    """
    differing: tuple[MismatchField, ...] = () if found.carries(subject) else ("subject",)
    return _judge(found, owner, differing)


def _judge(
    found: FoundClaim, owner: Mapping[str, str], differing: tuple[MismatchField, ...]
) -> Verdict:
    if not found.carries(owner):
        carried = {key: found.value_of(key) for key in owner}
        return Foreign(found, MappingProxyType(carried))
    if found.deleting_since is not None:
        return Releasing(found)
    if differing:
        return Mismatch(found, differing)
    return _judge_condition(found)


def _differing(found: FoundClaim, wanted: Claim) -> tuple[MismatchField, ...]:
    agreement: tuple[tuple[MismatchField, bool], ...] = (
        ("subject", found.carries(wanted.subject)),
        ("requests", found.asks_for(wanted.requests)),
        ("consumer", found.consumer == wanted.consumer),
        ("resource", found.resource == wanted.claiming_resource),
    )
    return tuple(field for field, agrees in agreement if not agrees)


def _judge_condition(found: FoundClaim) -> Verdict:
    granted = found.granted
    if granted is None or granted.status not in {"True", "False"}:
        # Milo never says Unknown. Should it, nothing is decided yet.
        return Pending(found, found.created_at)
    if granted.status == "True":
        if _is_fully_allocated(found):
            return Granted(found, granted.message)
        return Mismatch(found, ("allocations",))
    if granted.reason == "PendingEvaluation":
        return Pending(found, found.created_at)
    if granted.reason == "ValidationFailed":
        return Invalid(found, granted.message)
    return Denied(found, granted.reason, granted.message, found.allocations)


def _is_fully_allocated(found: FoundClaim) -> bool:
    """Whether each request is reserved once, with exactly its amount.

    A raised amount stays Granted on its old allocation (docs/spec/quota.md A7), so the condition
    alone proves nothing.
    """
    reserved = [(a.resource_type, a.amount) for a in found.allocations if a.status == "Granted"]
    asked = [(request.resource_type, request.amount) for request in found.requests]
    return (
        bool(asked)
        and len(dict(asked)) == len(asked)
        and all(reserved.count(one) == 1 for one in asked)
    )
