"""Builders of Kubernetes objects for scenarios: JSON documents that pass schema and admission.

`a_bare_deployment` is the fixture of `docs/spec/operations.md` 9. The other builders make what a
user, an administrator, or a manual edit on the hub would write.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Final

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.kinds import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    GRANT,
    INSTANCE,
    LOCATION,
    NAMESPACE,
    NETWORK,
    PROJECT,
    SECRET,
    SUSPENSION,
    WORKLOAD,
    Kind,
)
from e2e.world.objects import name_of, namespace_of, object_at, text_at, uid_of

IMAGE: Final = "registry.example.net/shop/storefront"
NETWORK_NAME: Final = "test-network"
INSTANCE_TYPE: Final = "datumcloud/d1-standard-2"
DEFAULT_GRANT: Final = "compute.datumapis.com-default"
WORKLOAD_UID: Final = "00000000-0000-0000-0000-000000000001"


def a_document(kind: Kind, name: str, **members: JsonValue) -> JsonObject:
    metadata: JsonObject = {"name": name}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": metadata,
        **members,
    }


def a_namespace(name: str) -> JsonObject:
    return a_document(NAMESPACE, name)


def a_network(name: str, namespace: str) -> JsonObject:
    document = a_document(NETWORK, name, spec={"ipam": {"mode": "Auto"}})
    document["metadata"] = {"name": name, "namespace": namespace}
    return document


def a_location(city: str) -> JsonObject:
    spec: JsonObject = {
        "locationClassName": "datum-managed",
        "topology": {labels.TOPOLOGY_CITY_CODE: city},
        "provider": {},
    }
    return a_document(LOCATION, f"at-{city.lower()}", spec=spec)


def a_grant(project: str, instances: int) -> JsonObject:
    """The default grant of a project with `instances` as its limit; other resources are ample."""
    amounts = {
        labels.INSTANCES_RESOURCE: instances,
        labels.VCPUS_RESOURCE: 1_000_000,
        labels.MEMORY_RESOURCE: 1_000_000,
    }
    allowances: list[JsonValue] = [
        {"resourceType": resource, "buckets": [{"amount": amount}]}
        for resource, amount in amounts.items()
    ]
    consumer: JsonObject = {"apiGroup": PROJECT.group, "kind": PROJECT.name, "name": project}
    spec: JsonObject = {"consumerRef": consumer, "allowances": allowances}
    document = a_document(GRANT, DEFAULT_GRANT, spec=spec)
    document["metadata"] = {"name": DEFAULT_GRANT, "namespace": "milo-system"}
    return document


def a_claim(project: str, instance: str, cell: str) -> JsonObject:
    """A ResourceClaim as a cell operator makes it for an Instance, with the smallest amounts."""
    consumer: JsonObject = {"apiGroup": PROJECT.group, "kind": PROJECT.name, "name": project}
    resources = (labels.INSTANCES_RESOURCE, labels.VCPUS_RESOURCE, labels.MEMORY_RESOURCE)
    requests: list[JsonValue] = [{"resourceType": one, "amount": 1} for one in resources]
    spec: JsonObject = {
        "consumerRef": consumer,
        "resourceRef": {**consumer},
        "requests": requests,
    }
    document = a_document(CLAIM, f"instance-{instance}", spec=spec)
    carried: JsonObject = {labels.SOURCE_CLUSTER: cell}
    metadata: JsonObject = {**object_at(document, "metadata"), "labels": carried}
    document["metadata"] = metadata
    return document


def a_template(
    tag: str = "1.0",
    *,
    networks: Sequence[str] = (NETWORK_NAME,),
    annotations: Mapping[str, str] | None = None,
    instance_type: str = INSTANCE_TYPE,
) -> JsonObject:
    """One container. The tag of its image chooses how the simulated provider runs it."""
    interfaces: list[JsonValue] = [{"network": {"name": name}} for name in networks]
    runtime: JsonObject = {
        "resources": {"instanceType": instance_type},
        "sandbox": {"containers": [{"name": "web", "image": f"{IMAGE}:{tag}"}]},
    }
    template: JsonObject = {"spec": {"runtime": runtime, "networkInterfaces": interfaces}}
    if annotations:
        template["metadata"] = {"annotations": {**annotations}}
    return template


def a_placement(name: str = "default", *cities: str, replicas: int = 1) -> JsonObject:
    return {
        "name": name,
        "cityCodes": [*(cities or ("DFW",))],
        "scaleSettings": {"minReplicas": replicas, "instanceManagementPolicy": "OrderedReady"},
    }


def a_workload(
    name: str = "web", *placements: JsonObject, template: JsonObject | None = None
) -> JsonObject:
    placed: list[JsonValue] = [*(placements or (a_placement(),))]
    spec: JsonObject = {"template": template or a_template(), "placements": placed}
    return a_document(WORKLOAD, name, spec=spec)


def a_bare_deployment(
    name: str, city: str = "DFW", *, replicas: int = 1, template: JsonObject | None = None
) -> JsonObject:
    """A WorkloadDeployment without a Workload behind it."""
    spec: JsonObject = {
        "workloadRef": {"name": "test-workload", "uid": WORKLOAD_UID},
        "placementName": "default",
        "cityCode": city,
        "template": template or a_template(),
        "scaleSettings": {"minReplicas": replicas, "instanceManagementPolicy": "OrderedReady"},
    }
    return a_document(DEPLOYMENT, name, spec=spec)


def derive_linking_labels(deployment: JsonObject, ordinal: int) -> JsonObject:
    """The seven labels that tie an Instance to its slot."""
    spec = object_at(deployment, "spec")
    return {
        labels.WORKLOAD_UID: text_at(spec, "workloadRef", "uid"),
        labels.WORKLOAD_NAME: text_at(spec, "workloadRef", "name"),
        labels.WORKLOAD_DEPLOYMENT_UID: uid_of(deployment),
        labels.WORKLOAD_DEPLOYMENT_NAME: name_of(deployment),
        labels.PLACEMENT_NAME: text_at(spec, "placementName"),
        labels.CITY_CODE: text_at(spec, "cityCode"),
        labels.INSTANCE_INDEX: str(ordinal),
    }


def an_instance(deployment: JsonObject, ordinal: int = 0, **linking: JsonValue) -> JsonObject:
    """An Instance for one slot, created by hand beside its deployment, without owner reference."""
    document = a_document(INSTANCE, f"{name_of(deployment)}-{ordinal}")
    document["metadata"] = {
        "name": f"{name_of(deployment)}-{ordinal}",
        "namespace": namespace_of(deployment),
        "labels": {**derive_linking_labels(deployment, ordinal), **linking},
    }
    document["spec"] = {
        **object_at(deployment, "spec", "template", "spec"),
        "controller": {"templateHash": "v1-0", "schedulingGates": []},
    }
    return document


def a_hub_instance(
    deployment: JsonObject, identity: JsonObject, cell: str = "dfw-1", ordinal: int = 0
) -> JsonObject:
    """An Instance as a cell operator writes it back beside its hub deployment.

    `identity` holds the two identity labels of the hub namespace.
    """
    document = an_instance(deployment, ordinal, **identity, **{labels.CELL: cell})
    owner: JsonObject = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.name,
        "name": name_of(deployment),
        "uid": uid_of(deployment),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    document["metadata"] = {
        **object_at(document, "metadata"),
        "annotations": {labels.INSTANCE_UID: f"of-{name_of(deployment)}-{ordinal}"},
        "ownerReferences": [owner],
    }
    return document


def a_config_map(name: str, value: str = "1") -> JsonObject:
    return a_document(CONFIG_MAP, name, data={"k": value})


def a_secret(name: str) -> JsonObject:
    return a_document(SECRET, name, data={"k": base64.b64encode(b"a password").decode()})


def a_suspension(project: str) -> JsonObject:
    """The order of the platform to suspend a project; it bears the project's name."""
    spec: JsonObject = {
        "projectRef": {"name": project},
        "reason": "Billing",
        "reinstateAuthority": "Operator",
        "requestedBy": "billing",
    }
    return a_document(SUSPENSION, project, spec=spec)
