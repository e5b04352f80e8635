"""What Milo refuses when a ResourceClaim is created, in its words (neighbours.md 2.3). Pure.

Milo's own plugin does it inside its API server; a webhook would put words before the text, so the
gateway answers. Updates are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.request_info import ResourcePath
from compute_sim_planes.json_types import JsonObject, integer_at, object_at, objects_at, string_at
from e2e.planes.client import has_condition

CLAIMS: Final = GroupResource("quota.miloapis.com", "resourceclaims")
REGISTRATIONS_PATH: Final = "/apis/quota.miloapis.com/v1alpha1/resourceregistrations"


def is_claim_create(method: str, asked: ResourcePath | None) -> bool:
    return (
        method == "POST"
        and asked is not None
        and (asked.group, asked.resource) == CLAIMS
        and not asked.subresource
    )


def refuse_claim(claim: JsonObject, registrations: Iterable[JsonObject]) -> ApiError | None:
    """The refusal of a claim with everything that is wrong with it."""
    known = {
        string_at(registration, "spec", "resourceType"): registration
        for registration in registrations
        if has_condition(registration, "Active")
    }
    errors = [*_request_errors(claim, known), *_rule_errors(claim, known)]
    if not errors:
        return None
    name = string_at(claim, "metadata", "name")
    told = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    why = f'ResourceClaim.{CLAIMS.group} "{name}" is invalid: {told}'
    return api_errors.forbidden(CLAIMS, name, why)


def _request_errors(claim: JsonObject, known: Mapping[str, JsonObject]) -> Iterator[str]:
    first_at: dict[str, int] = {}
    for position, request in enumerate(objects_at(claim, "spec", "requests")):
        at, wanted = f"spec.requests[{position}]", string_at(request, "resourceType")
        if wanted not in known:
            yield (
                f"{at}.resourceType: Invalid value: \"{wanted}\": Resource type '{wanted}' is not"
                " available for quota management. Enable quota tracking for this resource type by"
                " registering it with the quota system"
            )
        elif not _is_consumer(claim, known[wanted]):
            consumer = _typed(object_at(claim, "spec", "consumerRef"))
            yield (
                f'spec.consumerRef: Invalid value: "{consumer}": consumer type does not match the'
                f" one registered for {wanted}"
            )
        if wanted in first_at:
            yield (
                f"{at}.resourceType: Duplicate value: \"resource type '{wanted}' is already"
                f' specified in request {first_at[wanted]}"'
            )
        first_at.setdefault(wanted, position)
        amount = integer_at(request, "amount") or 0
        if amount <= 0:
            yield f"{at}.amount: Invalid value: {amount}: amount must be greater than 0"


def _rule_errors(claim: JsonObject, known: Mapping[str, JsonObject]) -> Iterator[str]:
    claiming = object_at(claim, "spec", "resourceRef")
    for position, request in enumerate(objects_at(claim, "spec", "requests")):
        at, wanted = f"spec.requests[{position}].resourceType", string_at(request, "resourceType")
        if wanted not in known:
            yield (
                f"{at}: Internal error: failed to check claiming rules for {wanted}: no"
                f" ResourceRegistration found for resource type {wanted}"
            )
            continue
        allowed = objects_at(known[wanted], "spec", "claimingResources")
        if not any(_may_claim(claiming, one) for one in allowed):
            names = ", ".join(_typed(one) for one in allowed)
            yield (
                f"{at}: Forbidden: resource type {_typed(claiming)} does not satisfy claiming rules"
                f" for {wanted}. Allowed claiming resources: [{names}]"
            )


def _is_consumer(claim: JsonObject, registration: JsonObject) -> bool:
    consumer = object_at(claim, "spec", "consumerRef")
    return _typed(consumer) == _typed(object_at(registration, "spec", "consumerType"))


def _may_claim(claiming: JsonObject, allowed: JsonObject) -> bool:
    # The group exactly, the kind in any case: Milo compares them so.
    same_group = string_at(claiming, "apiGroup") == string_at(allowed, "apiGroup")
    return same_group and _kind(claiming).lower() == _kind(allowed).lower()


def _typed(reference: JsonObject) -> str:
    return f"{string_at(reference, 'apiGroup')}/{_kind(reference)}"


def _kind(reference: JsonObject) -> str:
    return string_at(reference, "kind")
