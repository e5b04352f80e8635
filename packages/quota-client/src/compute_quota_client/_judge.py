"""Derives the verdict on a claim that exists; pure.

The order of the checks keeps the library safe: owner, deletion, equality with the wanted claim, and
only then the condition of the quota service. A claim that differs in any field is never a grant.
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
    claim: FoundClaim, *, owner: Mapping[str, str], subject: Mapping[str, str]
) -> Verdict:
    """The verdict for an adoption: owner and subject are compared, the rest is taken as it is."""
    differing: tuple[MismatchField, ...] = () if claim.carries(subject) else ("subject",)
    return _judge(claim, owner, differing)


def _judge(
    claim: FoundClaim, owner: Mapping[str, str], differing: tuple[MismatchField, ...]
) -> Verdict:
    if not claim.carries(owner):
        carried = {key: claim.value_of(key) for key in owner}
        return Foreign(claim, MappingProxyType(carried))
    if claim.deleting_since is not None:
        return Releasing(claim)
    if differing:
        return Mismatch(claim, differing)
    return _judge_condition(claim)


def _differing(claim: FoundClaim, wanted: Claim) -> tuple[MismatchField, ...]:
    agreement: tuple[tuple[MismatchField, bool], ...] = (
        ("subject", claim.carries(wanted.subject)),
        ("requests", claim.asks_for(wanted.requests)),
        ("consumer", claim.consumer == wanted.consumer),
        ("resource", claim.resource == wanted.claiming_resource),
    )
    return tuple(field for field, agrees in agreement if not agrees)


def _judge_condition(claim: FoundClaim) -> Verdict:
    granted = claim.granted
    if granted is None or granted.status not in {"True", "False"}:
        # Milo never writes Unknown. If it did, the claim would not be evaluated yet.
        return Pending(claim, claim.created_at)
    if granted.status == "True":
        if _is_fully_allocated(claim):
            return Granted(claim, granted.message)
        return Mismatch(claim, ("allocations",))
    if granted.reason == "PendingEvaluation":
        return Pending(claim, claim.created_at)
    if granted.reason == "ValidationFailed":
        return Invalid(claim, granted.message)
    return Denied(claim, granted.reason, granted.message, claim.allocations)


def _is_fully_allocated(claim: FoundClaim) -> bool:
    """Whether each request is reserved once, with exactly its amount.

    After an edit that raises an amount, the claim stays Granted on its old allocation
    (docs/spec/quota.md A7), so the condition alone is no proof.
    """
    reserved = [(a.resource_type, a.amount) for a in claim.allocations if a.status == "Granted"]
    asked = [(request.resource_type, request.amount) for request in claim.requests]
    return (
        bool(asked)
        and len(dict(asked)) == len(asked)
        and all(reserved.count(one) == 1 for one in asked)
    )
