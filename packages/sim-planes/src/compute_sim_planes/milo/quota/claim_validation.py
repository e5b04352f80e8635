"""Validation of new ResourceClaims and ResourceRegistrations, with Milo's messages. Pure.

Milo validates inside its API server; a stand-in for Milo in front of a real one uses these
functions too. Updates are not validated (neighbours.md 2.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.schema.field_problems import FieldProblem
from compute_sim_planes.client.rest import Resource
from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.json_types import JsonObject, integer_at, object_at, objects_at, string_at
from compute_sim_planes.milo.kinds import CLAIMS, REGISTRATIONS


def derive_active(registrations: Iterable[JsonObject]) -> dict[str, JsonObject]:
    """The active registrations by resource type."""
    return {
        string_at(one, "spec", "resourceType"): one
        for one in registrations
        if is_condition_true(one, "Active")
    }


def refuse_claim(claim: JsonObject, active: Mapping[str, JsonObject]) -> StatusError | None:
    """The error with all problems of a claim; None if it is valid."""
    problems = [str(one) for one in _request_problems(claim, active)]
    problems += _rule_problems(claim, active)
    return _refuse(CLAIMS, claim, problems)


def refuse_registration(
    desired: JsonObject, registrations: Iterable[JsonObject]
) -> StatusError | None:
    """The error of a registration with a resource type that is already registered."""
    resource_type = string_at(desired, "spec", "resourceType")
    taken = {string_at(one, "spec", "resourceType") for one in registrations}
    if resource_type not in taken:
        return None
    value = f"resource type '{resource_type}' is already registered"
    problem = field_problems.duplicate("spec.resourceType", value)
    return _refuse(REGISTRATIONS, desired, [str(problem)])


def _refuse(resource: Resource, desired: JsonObject, problems: list[str]) -> StatusError | None:
    if not problems:
        return None
    name = string_at(desired, "metadata", "name")
    details = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    why = f'{resource.kind}.{resource.group} "{name}" is invalid: {details}'
    return api_errors.forbidden(GroupResource(resource.group, resource.plural), name, why)


def _request_problems(
    claim: JsonObject, active: Mapping[str, JsonObject]
) -> Iterator[FieldProblem]:
    first_at: dict[str, int] = {}
    for position, request in enumerate(objects_at(claim, "spec", "requests")):
        at, resource = f"spec.requests[{position}]", string_at(request, "resourceType")
        if resource not in active:
            detail = (
                f"Resource type '{resource}' is not available for quota management. Enable quota"
                " tracking for this resource type by registering it with the quota system"
            )
            yield field_problems.invalid(f"{at}.resourceType", resource, detail)
        elif not _is_consumer(claim, active[resource]):
            # Only code and reason of this error were observed, not the message.
            consumer = _typed(object_at(claim, "spec", "consumerRef"))
            detail = f"consumer type does not match the one registered for {resource}"
            yield field_problems.invalid("spec.consumerRef", consumer, detail)
        if resource in first_at:
            value = (
                f"resource type '{resource}' is already specified in request {first_at[resource]}"
            )
            yield field_problems.duplicate(f"{at}.resourceType", value)
        first_at.setdefault(resource, position)
        amount = integer_at(request, "amount") or 0
        if amount <= 0:
            yield field_problems.invalid(f"{at}.amount", amount, "amount must be greater than 0")


def _rule_problems(claim: JsonObject, active: Mapping[str, JsonObject]) -> Iterator[str]:
    claiming = object_at(claim, "spec", "resourceRef")
    for position, request in enumerate(objects_at(claim, "spec", "requests")):
        at, resource = (
            f"spec.requests[{position}].resourceType",
            string_at(request, "resourceType"),
        )
        if resource not in active:
            yield (
                f"{at}: Internal error: failed to check claiming rules for {resource}: no"
                f" ResourceRegistration found for resource type {resource}"
            )
            continue
        allowed = objects_at(active[resource], "spec", "claimingResources")
        if not any(_may_claim(claiming, one) for one in allowed):
            names = ", ".join(_typed(one) for one in allowed)
            detail = (
                f"resource type {_typed(claiming)} does not satisfy claiming rules for {resource}."
                f" Allowed claiming resources: [{names}]"
            )
            yield str(field_problems.forbidden(at, detail))


def _is_consumer(claim: JsonObject, registration: JsonObject) -> bool:
    consumer = object_at(claim, "spec", "consumerRef")
    return _typed(consumer) == _typed(object_at(registration, "spec", "consumerType"))


def _may_claim(claiming: JsonObject, allowed: JsonObject) -> bool:
    # The group is compared exactly, the kind case-insensitively, as in Milo.
    same_group = string_at(claiming, "apiGroup") == string_at(allowed, "apiGroup")
    return same_group and (
        string_at(claiming, "kind").lower() == string_at(allowed, "kind").lower()
    )


def _typed(reference: JsonObject) -> str:
    return f"{string_at(reference, 'apiGroup')}/{string_at(reference, 'kind')}"
