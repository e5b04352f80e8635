"""The policy that pins the annotation of a suspension, as `deploy/components/suspension` has it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from compute_api_types import labels
from compute_api_types.testing import a_deployment
from compute_sim_planes.api_server.kinds.crd_documents import is_established
from compute_sim_planes.api_server.manifests import read_manifests
from compute_sim_planes.api_server.testing import Api, eventually
from compute_sim_planes.json_types import JsonObject, string_at

DEPLOY: Final = Path(__file__).parents[4] / "deploy"
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
PLACES: Final = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ValidatingAdmissionPolicy": f"{ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}/validatingadmissionpolicybindings",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
}
MANAGER: Final = "suspension-policy"
TENANT, PLATFORM = "tenant", "compute:suspension"
POLICY: Final = "compute-suspended-annotation"


def rights() -> list[JsonObject]:
    """Both users may do everything with deployments: only the policy refuses."""
    group = "rbac.authorization.k8s.io"
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": MANAGER},
            "rules": [
                {
                    "apiGroups": ["compute.datumapis.com"],
                    "resources": ["workloaddeployments"],
                    "verbs": ["get", "create", "patch", "delete"],
                }
            ],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": MANAGER},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": MANAGER},
            "subjects": [
                {"apiGroup": group, "kind": "User", "name": user} for user in (TENANT, PLATFORM)
            ],
        },
    ]


async def ensure(api: Api, document: JsonObject) -> None:
    kind, name = string_at(document, "kind"), string_at(document, "metadata", "name")
    target = f"{PLACES[kind]}/{name}"
    (await api.apply(target, document, MANAGER, force="true")).expect(200, 201)
    if kind == "CustomResourceDefinition":
        await eventually(lambda: api.get(target), lambda response: is_established(response.body))


@pytest_asyncio.fixture
async def deployments(api: Api) -> AsyncIterator[str]:
    """The collection of a namespace of the test's own, with the policy in force."""
    component = read_manifests(DEPLOY / "components/suspension")
    policies = [one for one in component if string_at(one, "kind").startswith("Validating")]
    for document in (*read_manifests(DEPLOY / "crds"), *rights(), *policies):
        await ensure(api, document)
    name = f"suspension-{uuid.uuid4()}"
    desired: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    (await api.post("/api/v1/namespaces", desired)).expect(201)
    path = f"/apis/compute.datumapis.com/v1alpha/namespaces/{name}/workloaddeployments"
    # On a real server permissions and policies take up to a second to be in force.
    await eventually(
        lambda: api.impersonating(TENANT).post(path, a_document("probe", "true")),
        lambda response: POLICY in str(response.body),
    )
    yield path
    await api.delete(f"/api/v1/namespaces/{name}")
    for document in policies:
        kind, name = string_at(document, "kind"), string_at(document, "metadata", "name")
        await api.delete(f"{PLACES[kind]}/{name}")


def a_document(name: str, suspended: str | None = None) -> JsonObject:
    dumped: JsonObject = a_deployment().model_dump(mode="json", by_alias=True, exclude_none=True)
    metadata: JsonObject = {"name": name}
    if suspended is not None:
        metadata["annotations"] = {labels.SUSPENDED: suspended}
    return {**{key: dumped[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata}


def annotated(value: str | None, **others: str) -> JsonObject:
    return {"metadata": {"annotations": {labels.SUSPENDED: value, **others}}}


@pytest.mark.spec("SU-21")
async def test_only_the_platform_suspends_and_resumes(api: Api, deployments: str) -> None:
    tenant, platform = api.impersonating(TENANT), api.impersonating(PLATFORM)
    (await tenant.post(deployments, a_document("one"))).expect(201)
    one = f"{deployments}/one"
    refused = await tenant.merge(one, annotated("true"))
    refused.expect(403)
    assert "written by the platform only" in str(refused.body)
    (await platform.merge(one, annotated("true"))).expect(200)
    for value in (None, "false", "", "True"):
        (await tenant.merge(one, annotated(value))).expect(403)
    (await platform.merge(one, annotated(None))).expect(200)


@pytest.mark.spec("SU-21")
async def test_all_else_of_a_suspended_deployment_stays_the_users(
    api: Api, deployments: str
) -> None:
    tenant, platform = api.impersonating(TENANT), api.impersonating(PLATFORM)
    (await tenant.post(deployments, a_document("three", "true"))).expect(403)
    (await platform.post(deployments, a_document("two", "true"))).expect(201)
    two = f"{deployments}/two"
    (await tenant.merge(two, {"metadata": {"annotations": {"own": "text"}}})).expect(200)
    (await tenant.delete(two)).expect(200)
