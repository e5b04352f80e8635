"""Milo's admission of a new claim, with its messages; updates are not checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compute_quota_client._fake.refusals import not_admitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compute_quota_client._fake.objects import ClaimObject, RegistrationObject

    Lookup = Callable[[str], RegistrationObject | None]


def admit_claim(claim: ClaimObject, registration: Lookup) -> None:
    """Refuses a claim with all of its errors."""
    errors = [*_request_errors(claim, registration), *_rule_errors(claim, registration)]
    if errors:
        raise not_admitted("resourceclaims", "ResourceClaim", claim.metadata.name, errors)


def _request_errors(claim: ClaimObject, registration: Lookup) -> Iterator[str]:
    seen: dict[str, int] = {}
    for position, request in enumerate(claim.spec.requests):
        at, kind = f"spec.requests[{position}]", request.resource_type
        registered = registration(kind)
        if registered is None:
            yield (
                f"{at}.resourceType: Invalid value: \"{kind}\": Resource type '{kind}' is not"
                " available for quota management. Enable quota tracking for this resource type by"
                " registering it with the quota system"
            )
        elif not _is_consumer(claim, registered):
            consumer = claim.spec.consumer_ref
            yield (
                f'spec.consumerRef: Invalid value: "{consumer.api_group}/{consumer.kind}": consumer'
                f" type does not match the one registered for {kind}"
            )
        if kind in seen:
            yield (
                f"{at}.resourceType: Duplicate value: \"resource type '{kind}' is already specified"
                f' in request {seen[kind]}"'
            )
        seen.setdefault(kind, position)
        if request.amount <= 0:
            yield f"{at}.amount: Invalid value: {request.amount}: amount must be greater than 0"


def _is_consumer(claim: ClaimObject, registration: RegistrationObject) -> bool:
    consumer, wanted = claim.spec.consumer_ref, registration.spec.consumer_type
    return (consumer.api_group, consumer.kind) == (wanted.api_group, wanted.kind)


def _rule_errors(claim: ClaimObject, registration: Lookup) -> Iterator[str]:
    resource = claim.spec.resource_ref
    for position, request in enumerate(claim.spec.requests):
        at, kind = f"spec.requests[{position}].resourceType", request.resource_type
        registered = registration(kind)
        if registered is None:
            yield (
                f"{at}: Internal error: failed to check claiming rules for {kind}: no"
                f" ResourceRegistration found for resource type {kind}"
            )
            continue
        allowed = registered.spec.claiming_resources
        if not any(
            (one.api_group, one.kind.lower()) == (resource.api_group, resource.kind.lower())
            for one in allowed
        ):
            names = ", ".join(f"{one.api_group}/{one.kind}" for one in allowed)
            yield (
                f"{at}: Forbidden: resource type {resource.api_group}/{resource.kind} does not"
                f" satisfy claiming rules for {kind}. Allowed claiming resources: [{names}]"
            )
