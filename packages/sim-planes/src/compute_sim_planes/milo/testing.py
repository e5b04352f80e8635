"""Builders of quota objects for tests, valid by default."""

from __future__ import annotations

from collections.abc import Mapping

from compute_sim_planes.client.rest import Resource
from compute_sim_planes.conditions import find_condition
from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at
from compute_sim_planes.milo import kinds

INSTANCE: JsonObject = {"apiGroup": "compute.datumapis.com", "kind": "Instance"}
PROJECT: JsonObject = {
    "apiGroup": kinds.RESOURCE_MANAGER_GROUP,
    "kind": kinds.PROJECTS.kind,
}


def a_registration(resource_type: str) -> JsonObject:
    """A registration of a resource type for Projects, claimed by Instances and Projects."""
    return _object(
        kinds.REGISTRATIONS,
        {"name": resource_type.replace("/", "-").replace(".", "-")},
        {
            "consumerType": {**PROJECT},
            "type": "Entity",
            "resourceType": resource_type,
            "baseUnit": "unit",
            "displayUnit": "unit",
            "unitConversionFactor": 1,
            "claimingResources": [{**INSTANCE}, {**PROJECT}],
        },
    )


def a_grant(project: str, amounts: Mapping[str, int], name: str = "grant") -> JsonObject:
    """A grant of amounts per resource type to a project."""
    allowances: list[JsonValue] = [
        {"resourceType": resource_type, "buckets": [{"amount": amount}]}
        for resource_type, amount in amounts.items()
    ]
    return _object(
        kinds.GRANTS,
        {"name": name, "namespace": kinds.SYSTEM_NAMESPACE},
        {"consumerRef": {**PROJECT, "name": project}, "allowances": allowances},
    )


def a_claim(
    project: str, name: str, requests: Mapping[str, int], **metadata: JsonValue
) -> JsonObject:
    """A claim of a project for itself, with amounts per resource type."""
    reference: JsonObject = {**PROJECT, "name": project}
    asked: list[JsonValue] = [
        {"resourceType": resource_type, "amount": amount}
        for resource_type, amount in requests.items()
    ]
    return _object(
        kinds.CLAIMS,
        {"name": name, "namespace": kinds.DEFAULT_NAMESPACE, **metadata},
        {"consumerRef": reference, "resourceRef": {**reference}, "requests": asked},
    )


def a_grant_policy(name: str, amounts: Mapping[str, int]) -> JsonObject:
    """A policy with a default grant for every Project."""
    grant = a_grant("{{trigger.metadata.name}}", amounts, name)
    context: JsonObject = {**PROJECT, "nameExpression": "trigger.metadata.name"}
    return _object(
        kinds.GRANT_POLICIES,
        {"name": name},
        {
            "trigger": {
                "resource": {
                    "apiVersion": kinds.PROJECTS.api_version,
                    "kind": kinds.PROJECTS.kind,
                }
            },
            "target": {
                "parentContext": context,
                "resourceGrantTemplate": {
                    "metadata": grant["metadata"],
                    "spec": grant["spec"],
                },
            },
        },
    )


def a_suspension(project: str, name: str = "unpaid", reason: str = "Billing") -> JsonObject:
    """An order to suspend a project."""
    return _object(
        kinds.SUSPENSIONS,
        {"name": name},
        {
            "projectRef": {"name": project},
            "reason": reason,
            "reinstateAuthority": "Operator",
            "requestedBy": "billing",
        },
    )


def verdict_of(claim: JsonObject | None) -> tuple[str, str]:
    """Status and reason of a claim's condition."""
    condition = find_condition(claim or {}, "Granted")
    return string_at(condition, "status"), string_at(condition, "reason")


def allocations_of(claim: JsonObject | None) -> dict[str, tuple[str, JsonValue]]:
    """Status and amount of each allocation by resource type."""
    return {
        string_at(one, "resourceType"): (string_at(one, "status"), one.get("allocatedAmount"))
        for one in objects_at(claim, "status", "allocations")
    }


def _object(resource: Resource, metadata: JsonObject, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": spec,
    }
