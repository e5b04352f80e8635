from __future__ import annotations

import base64
from pathlib import Path

import pytest

from compute_sim_planes.json_types import JsonObject, objects_at, string_at, value_at
from e2e.harness.errors import PlanesError
from e2e.harness.planes.plane_manifests import (
    fit_aggregation,
    fit_webhooks,
    parse_documents,
    read_documents,
    select_crds,
)
from e2e.harness.planes.topology import Role

AGGREGATION = """\
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.cluster.karmada.io}
spec:
  caBundle: {{caBundle}}
  service: {name: karmada-aggregated-apiserver, namespace: karmada-system}
---
apiVersion: v1
kind: Service
metadata: {name: karmada-aggregated-apiserver, namespace: karmada-system}
spec: {type: ExternalName, externalName: far.away}
"""
WEBHOOKS = """\
kind: MutatingWebhookConfiguration
webhooks:
- clientConfig:
    url: https://karmada-webhook.karmada-system.svc:443/mutate-work
    caBundle: {{caBundle}}
"""


def a_crd(group: str) -> JsonObject:
    return {"kind": "CustomResourceDefinition", "spec": {"group": group}}


def test_aggregated_server_is_reached_on_localhost_and_its_port() -> None:
    service, target = fit_aggregation(AGGREGATION, b"ca", 17443)
    assert value_at(service, "spec", "service", "port") == 17443
    assert base64.b64decode(string_at(service, "spec", "caBundle")) == b"ca"
    assert string_at(target, "spec", "externalName") == "localhost"


def test_webhooks_are_called_at_the_local_address() -> None:
    (configuration,) = fit_webhooks(WEBHOOKS, b"ca", "127.0.0.1:18443")
    (webhook,) = objects_at(configuration, "webhooks")
    assert string_at(webhook, "clientConfig", "url") == "https://127.0.0.1:18443/mutate-work"
    assert base64.b64decode(string_at(webhook, "clientConfig", "caBundle")) == b"ca"


def test_manifests_of_another_shape_are_refused_and_not_applied_half_fitted() -> None:
    with pytest.raises(PlanesError, match="unexpected webhook address"):
        fit_webhooks("kind: X\n", b"ca", "127.0.0.1:1")
    with pytest.raises(PlanesError, match="unexpected ConfigMap"):
        fit_aggregation("kind: ConfigMap\n", b"ca", 1)


def test_crds_go_where_their_group_belongs() -> None:
    crds: list[JsonObject] = [
        a_crd("compute.datumapis.com"),
        a_crd("quota.miloapis.com"),
        a_crd("networking.datumapis.com"),
        a_crd("example.com"),
        {"kind": "Kustomization"},
    ]
    groups = {
        role: [string_at(crd, "spec", "group").partition(".")[0] for crd in select_crds(crds, role)]
        for role in Role
    }
    assert groups == {
        Role.ROOT: ["compute", "quota", "networking"],
        Role.PROJECT: ["compute", "quota", "networking"],
        Role.HUB: ["compute"],
        Role.CELL: ["compute", "networking"],
        Role.SINGLE: ["compute"],
    }


def test_empty_documents_and_absent_folders_are_nothing(tmp_path: Path) -> None:
    assert parse_documents("---\n---\nkind: A\n---\n") == [{"kind": "A"}]
    assert read_documents(tmp_path / "absent") == []
