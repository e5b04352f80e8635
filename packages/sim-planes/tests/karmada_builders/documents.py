"""Builders of objects for tests of Karmada, valid by default.

A Gadget is a kind of these tests: it has a status and accepts any field, unlike the shipped kinds
with their schemas and defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from compute_sim_planes.client.rest import Resource
from compute_sim_planes.json_types import JsonObject, JsonValue
from compute_sim_planes.karmada.kinds import CUSTOMIZATIONS, NAMESPACES, POLICIES

CITY: Final = "topology.datum.net/city-code"
GADGETS: Final = Resource("karmada-contract.example.com", "v1", "gadgets", "Gadget")
DEPLOYMENTS: Final = Resource(
    "compute.datumapis.com", "v1alpha", "workloaddeployments", "WorkloadDeployment"
)


def a_free_definition(resource: Resource) -> JsonObject:
    """A CRD with a status subresource that accepts any field and has no defaults."""
    free: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: JsonObject = {"type": "object", "properties": {"spec": free, "status": {**free}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
            },
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def a_namespace(name: str, labels: Mapping[str, str] | None = None) -> JsonObject:
    return {
        "apiVersion": NAMESPACES.api_version,
        "kind": NAMESPACES.kind,
        "metadata": {"name": name, "labels": {**(labels or {})}},
    }


def a_gadget(namespace: str, name: str = "web", city: str = "DFW", size: int = 1) -> JsonObject:
    """An object labelled with a city."""
    return {
        "apiVersion": GADGETS.api_version,
        "kind": GADGETS.kind,
        "metadata": {"namespace": namespace, "name": name, "labels": {CITY: city}},
        "spec": {"size": size},
    }


def a_policy(
    namespace: str, name: str = "city-dfw", spec: Mapping[str, JsonValue] | None = None
) -> JsonObject:
    """A policy that sends Gadgets of a city to members with its label; `spec` overrides fields."""
    matched: JsonObject = {"matchLabels": {CITY: "DFW"}}
    selector: JsonObject = {
        "apiVersion": GADGETS.api_version,
        "kind": GADGETS.kind,
        "labelSelector": matched,
    }
    return {
        "apiVersion": POLICIES.api_version,
        "kind": POLICIES.kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "conflictResolution": "Overwrite",
            "resourceSelectors": [selector],
            "placement": {"clusterAffinity": {"labelSelector": matched}},
            **(spec or {}),
        },
    }


def a_customization(name: str, scripts: Mapping[str, str]) -> JsonObject:
    """A customization with scripts for Gadgets, by rule."""
    customizations: JsonObject = {rule: {"luaScript": script} for rule, script in scripts.items()}
    return {
        "apiVersion": CUSTOMIZATIONS.api_version,
        "kind": CUSTOMIZATIONS.kind,
        "metadata": {"name": name},
        "spec": {
            "target": {"apiVersion": GADGETS.api_version, "kind": GADGETS.kind},
            "customizations": customizations,
        },
    }
