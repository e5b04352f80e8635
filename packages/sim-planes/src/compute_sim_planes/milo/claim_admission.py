"""What Milo refuses when a ResourceClaim or a ResourceRegistration is created, in its words. Pure.

Milo does it inside its API server; whoever plays its part before a real one answers by this too.
Updates are not looked at (neighbours.md 2.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from compute_sim_planes.api_server import api_errors, field_problems
from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.field_problems import FieldProblem
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.client import Resource
from compute_sim_planes.json_types import JsonObject, integer_at, object_at, objects_at, string_at
from compute_sim_planes.milo.conditions import holds
from compute_sim_planes.milo.kinds import CLAIMS, REGISTRATIONS


def derive_active(registrations: Iterable[JsonObject]) -> dict[str, JsonObject]:
    """The registrations that are in force, by their resource type."""
    return {
        string_at(one, "spec", "resourceType"): one for one in registrations if holds(one, "Active")
    }


def refuse_claim(claim: JsonObject, active: Mapping[str, JsonObject]) -> ApiError | None:
    """The refusal of a claim with everything that is wrong with it; None if it may pass."""
    problems = [str(one) for one in _request_problems(claim, active)]
    problems += _rule_problems(claim, active)
    return _refuse(CLAIMS, claim, problems)


def refuse_registration(wanted: JsonObject, registrations: Iterable[JsonObject]) -> ApiError | None:
    """The refusal of a registration whose resource type is taken, by an active one or not."""
    resource_type = string_at(wanted, "spec", "resourceType")
    taken = {string_at(one, "spec", "resourceType") for one in registrations}
    if resource_type not in taken:
        return None
    value = f"resource type '{resource_type}' is already registered"
    problem = field_problems.duplicate("spec.resourceType", value)
    return _refuse(REGISTRATIONS, wanted, [str(problem)])


def _refuse(resource: Resource, wanted: JsonObject, problems: list[str]) -> ApiError | None:
    if not problems:
        return None
    name = string_at(wanted, "metadata", "name")
    told = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    why = f'{resource.kind}.{resource.group} "{name}" is invalid: {told}'
    return api_errors.forbidden(GroupResource(resource.group, resource.plural), name, why)


def _request_problems(
    claim: JsonObject, active: Mapping[str, JsonObject]
) -> Iterator[FieldProblem]:
    first_at: dict[str, int] = {}
    for position, request in enumerate(objects_at(claim, "spec", "requests")):
        at, wanted = f"spec.requests[{position}]", string_at(request, "resourceType")
        if wanted not in active:
            detail = (
                f"Resource type '{wanted}' is not available for quota management. Enable quota"
                " tracking for this resource type by registering it with the quota system"
            )
            yield field_problems.invalid(f"{at}.resourceType", wanted, detail)
        elif not _is_consumer(claim, active[wanted]):
            # Of this refusal only code and reason were observed, not the words.
            consumer = _typed(object_at(claim, "spec", "consumerRef"))
            detail = f"consumer type does not match the one registered for {wanted}"
            yield field_problems.invalid("spec.consumerRef", consumer, detail)
        if wanted in first_at:
            value = f"resource type '{wanted}' is already specified in request {first_at[wanted]}"
            yield field_problems.duplicate(f"{at}.resourceType", value)
        first_at.setdefault(wanted, position)
        amount = integer_at(request, "amount") or 0
        if amount <= 0:
            yield field_problems.invalid(f"{at}.amount", amount, "amount must be greater than 0")


def _rule_problems(claim: JsonObject, active: Mapping[str, JsonObject]) -> Iterator[str]:
    claiming = object_at(claim, "spec", "resourceRef")
    for position, request in enumerate(objects_at(claim, "spec", "requests")):
        at, wanted = f"spec.requests[{position}].resourceType", string_at(request, "resourceType")
        if wanted not in active:
            yield (
                f"{at}: Internal error: failed to check claiming rules for {wanted}: no"
                f" ResourceRegistration found for resource type {wanted}"
            )
            continue
        allowed = objects_at(active[wanted], "spec", "claimingResources")
        if not any(_may_claim(claiming, one) for one in allowed):
            names = ", ".join(_typed(one) for one in allowed)
            detail = (
                f"resource type {_typed(claiming)} does not satisfy claiming rules for {wanted}."
                f" Allowed claiming resources: [{names}]"
            )
            yield str(field_problems.forbidden(at, detail))


def _is_consumer(claim: JsonObject, registration: JsonObject) -> bool:
    consumer = object_at(claim, "spec", "consumerRef")
    return _typed(consumer) == _typed(object_at(registration, "spec", "consumerType"))


def _may_claim(claiming: JsonObject, allowed: JsonObject) -> bool:
    # The group exactly, the kind in any case: Milo compares them so.
    same_group = string_at(claiming, "apiGroup") == string_at(allowed, "apiGroup")
    return same_group and (
        string_at(claiming, "kind").lower() == string_at(allowed, "kind").lower()
    )


def _typed(reference: JsonObject) -> str:
    return f"{string_at(reference, 'apiGroup')}/{string_at(reference, 'kind')}"
