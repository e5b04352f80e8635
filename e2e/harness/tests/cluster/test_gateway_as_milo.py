from __future__ import annotations

import asyncio
import json
import ssl
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at
from e2e.harness.access.client import ApiError, Endpoint, PlaneClient, has_condition
from e2e.harness.access.waiting import until
from e2e.harness.planes.identities import a_cell_operator
from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.helpers import a_claim, a_registration

CELL = a_cell_operator("dfw-1").user
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def a_config_map(name: str) -> JsonObject:
    meta: JsonObject = {"namespace": "default", "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def a_name(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def a_kind(plural: str) -> JsonObject:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.mirror.test"},
        "spec": {
            "group": "mirror.test",
            "scope": "Namespaced",
            "names": {"kind": plural.capitalize(), "plural": plural, "singular": plural},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }


@asynccontextmanager
async def raw_session(endpoint: Endpoint) -> AsyncGenerator[aiohttp.ClientSession]:
    trusted = ssl.create_default_context(cadata=endpoint.authority.decode())
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trusted), headers=endpoint.headers()
    ) as session:
        yield session


async def test_object_written_through_the_gateway_is_in_that_project_alone(
    real_planes: RealPlanes,
) -> None:
    name = a_name("written")
    async with real_planes.milo.client("p1") as client:
        await client.create(a_config_map(name))
    async with real_planes.plane("p1").client() as p1, real_planes.plane("p2").client() as p2:
        assert await p1.find(f"{CONFIG_MAPS}/{name}")
        assert await p2.find(f"{CONFIG_MAPS}/{name}") is None


async def test_user_is_known_in_the_project_with_its_parent_whatever_it_claims(
    real_planes: RealPlanes,
) -> None:
    endpoint = real_planes.milo.endpoint("p1", CELL)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    claims = {
        "X-Remote-User": "planes-admin",
        "X-Remote-Group": "system:masters",
        "X-Remote-Extra-iam.miloapis.com%2fparent-name": "p2",
    }
    url = f"{endpoint.server}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    async with (
        raw_session(endpoint) as session,
        session.post(url, json=review, headers=claims) as answer,
    ):
        reviewed: JsonValue = await answer.json()
    user = object_at(reviewed, "status", "userInfo")
    assert string_at(user, "username") == CELL
    assert user["groups"] == ["system:authenticated"]
    assert user["extra"] == {
        "iam.miloapis.com/parent-api-group": ["resourcemanager.miloapis.com"],
        "iam.miloapis.com/parent-type": ["Project"],
        "iam.miloapis.com/parent-name": ["p1"],
    }


async def test_wrong_token_is_unauthorized_and_none_is_anonymous(real_planes: RealPlanes) -> None:
    endpoint = real_planes.milo.endpoint("p1")
    wrong = real_planes.plane("hub").endpoint().token
    async with PlaneClient(Endpoint(endpoint.server, endpoint.authority, wrong)) as client:
        with pytest.raises(ApiError, match="401"):
            await client.get(CONFIG_MAPS)
    async with PlaneClient(Endpoint(endpoint.server, endpoint.authority)) as client:
        with pytest.raises(ApiError, match="system:anonymous"):
            await client.get(CONFIG_MAPS)


@pytest.mark.spec("OU-02")
async def test_the_first_request_for_a_kind_is_answered(real_planes: RealPlanes) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    for project in ("p2", a_name("fresh")):
        async with real_planes.milo.client(project) as client:
            assert objects_at(await client.get(path), "items") == []


async def test_watch_streams_through_the_gateway(real_planes: RealPlanes) -> None:
    name = a_name("watched")
    async with real_planes.milo.client("p1") as client:
        version = string_at(await client.get(CONFIG_MAPS), "metadata", "resourceVersion")
        async with client.watch(CONFIG_MAPS, version) as lines:
            await client.create(a_config_map(name))
            event: JsonValue = json.loads(await asyncio.wait_for(lines.readline(), 10))
    assert string_at(event, "type") == "ADDED"
    assert string_at(event, "object", "metadata", "name") == name


async def test_missing_project_answers_and_is_empty(real_planes: RealPlanes) -> None:
    async with real_planes.milo.client("nobodys") as client:
        assert objects_at(await client.get("/api/v1/configmaps"), "items") == []
        assert await client.find("/api/v1/namespaces/default") is None
        assert objects_at(await client.get("/apis"), "groups")
        with pytest.raises(ApiError) as refused:
            await client.create(a_config_map("x"))
    assert refused.value.code == 404
    assert string_at(refused.value.status, "details", "kind") == "namespaces"


async def test_plane_that_is_down_is_unavailable_and_the_others_are_not(
    real_planes: RealPlanes,
) -> None:
    api_server = real_planes.plane("p2").api_server
    await api_server.crash()
    try:
        async with real_planes.milo.client("p2") as client:
            with pytest.raises(ApiError) as refused:
                await client.get("/version")
        async with real_planes.milo.client("p1") as client:
            assert await client.get("/version")
    finally:
        await api_server.up()
    assert (refused.value.code, refused.value.reason) == (503, "ServiceUnavailable")


async def test_kind_installed_at_the_root_is_served_in_projects_until_it_is_removed(
    real_planes: RealPlanes,
) -> None:
    plural = f"m{uuid.uuid4().hex[:6]}"
    path = f"/apis/mirror.test/v1/namespaces/default/{plural}"
    async with real_planes.milo.client() as root, real_planes.plane("p1").client() as project:

        async def served() -> bool:
            return await project.find(path) is not None

        async def gone() -> bool:
            return await project.find(path) is None

        kind = await root.apply(a_kind(plural))
        await until("the kind in p1", served, check=real_planes.check)
        await root.delete(await root.path_of(kind))
        await until("its end in p1", gone, check=real_planes.check)


async def test_project_that_was_away_is_updated_when_it_returns(real_planes: RealPlanes) -> None:
    plural = f"m{uuid.uuid4().hex[:6]}"
    away = real_planes.plane("p2")
    await away.api_server.crash()
    try:
        async with real_planes.milo.client() as root:
            await root.apply(a_kind(plural))
    finally:
        await away.api_server.up()
    async with away.client() as project:

        async def served() -> bool:
            path = f"/apis/mirror.test/v1/namespaces/default/{plural}"
            return await project.find(path) is not None

        await until("the kind in p2", served, check=real_planes.check)


async def test_admission_policy_of_the_root_holds_in_projects(real_planes: RealPlanes) -> None:
    policy: JsonObject = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-forbidden-names"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                    }
                ]
            },
            "validations": [{"expression": "!object.metadata.name.startsWith('forbidden')"}],
        },
    }
    binding: JsonObject = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-forbidden-names"},
        "spec": {"policyName": "no-forbidden-names", "validationActions": ["Deny"]},
    }
    async with real_planes.milo.client() as root, real_planes.milo.client("p2") as project:
        await root.apply(policy)
        await root.apply(binding)

        async def refused() -> bool:
            try:
                await project.create(a_config_map(a_name("forbidden")))
            except ApiError as refusal:
                return "no-forbidden-names" in str(refusal)
            return False

        await until("the policy in p2", refused, check=real_planes.check)
        for document in (binding, policy):
            await root.delete(await root.path_of(document))


CLAIMS = "/apis/quota.miloapis.com/v1alpha1/namespaces/default/resourceclaims"


async def test_claim_of_an_unregistered_type_is_refused_in_milos_words(
    real_planes: RealPlanes,
) -> None:
    async with real_planes.milo.client("p1") as client:
        with pytest.raises(ApiError) as refused:
            await client.create(a_claim("p1", "too-much", "example.com/unknown"))
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
    assert string_at(refused.value.status, "message").startswith(
        'resourceclaims.quota.miloapis.com "too-much" is forbidden: '
        'ResourceClaim.quota.miloapis.com "too-much" is invalid: [spec.requests[0].resourceType:'
    )


async def test_claim_of_a_registered_type_is_stored_in_its_project_and_a_taken_name_conflicts(
    real_planes: RealPlanes,
) -> None:
    name = a_name("claim")
    registration = a_registration(a_name("registration"), f"example.com/{name}")
    async with real_planes.milo.client() as root:
        path = await root.path_of(registration)
        await root.create(registration)

        async def active() -> bool:
            return has_condition(await root.get(path), "Active")

        await until("the registration to be active", active, check=real_planes.check)
    async with real_planes.milo.client("p1") as client:
        await client.create(a_claim("p1", name, f"example.com/{name}"))
        with pytest.raises(ApiError) as taken:
            await client.create(a_claim("p1", name, f"example.com/{name}"))
        with pytest.raises(ApiError) as invalid:
            await client.create(a_claim("p1", name, "example.com/unknown"))
    assert (taken.value.code, taken.value.reason) == (409, "AlreadyExists")
    assert invalid.value.code == 403
    async with real_planes.plane("p1").client() as project:
        assert await project.find(f"{CLAIMS}/{name}")


async def test_claim_without_rights_is_refused_for_that_and_not_judged(
    real_planes: RealPlanes,
) -> None:
    endpoint = real_planes.milo.endpoint("p1", CELL)
    claim = a_claim("p1", "no-rights", "example.com/unknown")
    async with (
        raw_session(endpoint) as session,
        session.post(f"{endpoint.server}{CLAIMS}", json=claim) as answer,
    ):
        refusal: JsonValue = await answer.json()
    assert f'User "{CELL}" cannot create resource "resourceclaims"' in string_at(refusal, "message")
