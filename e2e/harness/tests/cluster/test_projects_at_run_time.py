"""Projects that are created and deleted through the API while the stack runs."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from compute_sim_planes.json_types import JsonObject, objects_at, string_at
from e2e.harness.access.client import ApiError, PlaneClient, has_condition
from e2e.harness.access.waiting import until
from e2e.harness.stack.milo import a_project_named
from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.helpers import a_claim, a_grant, a_registration

READY_WITHIN = 15.0
PROJECTS = "/apis/resourcemanager.miloapis.com/v1alpha1/projects"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
QUOTA = "/apis/quota.miloapis.com/v1alpha1"


async def make(planes: RealPlanes, name: str) -> float:
    """Creates a Project, waits until it is Ready, and returns the seconds it took."""
    began = time.monotonic()
    async with planes.milo.client() as root:
        await root.create(a_project_named(name))

        async def ready() -> bool:
            return has_condition(await root.get(f"{PROJECTS}/{name}"), "Ready")

        await until(f"project {name} to be Ready", ready, check=planes.check)
    return time.monotonic() - began


async def delete(planes: RealPlanes, name: str) -> None:
    async with planes.milo.client() as root:
        await root.delete(f"{PROJECTS}/{name}")

        async def gone() -> bool:
            return await root.find(f"{PROJECTS}/{name}") is None

        await until(f"project {name} to go", gone, check=planes.check)


async def ended(planes: RealPlanes, name: str) -> None:
    async def is_ended() -> bool:
        processes = {process.name.partition(".")[0] for process in planes.processes}
        return name not in {*processes, *(plane.name for plane in planes.planes)}

    await until(f"the plane of {name} to end", is_ended, check=planes.check)


async def touch(client: PlaneClient, path: str) -> JsonObject:
    """Reads past the 429s of an API server that has just started, until its watch cache is
    filled.
    """
    for _ in range(50):
        try:
            return await client.get(path)
        except ApiError as refused:
            if refused.code != 429:
                raise
            await asyncio.sleep(0.1)
    raise AssertionError(f"{path}: still put off")


async def fill(planes: RealPlanes, project: str, name: str) -> None:
    """Creates an object in a project."""
    meta: JsonObject = {"namespace": "default", "name": name}
    async with planes.milo.client(project) as client:
        await touch(client, CONFIG_MAPS)
        await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


async def registered(planes: RealPlanes, root: PlaneClient, resource_type: str) -> JsonObject:
    """Registers a resource type and waits until it is active."""
    registration = a_registration(resource_type.replace("/", "-"), resource_type)
    path = await root.path_of(await root.create(registration))

    async def active() -> bool:
        return has_condition(await root.get(path), "Active")

    await until("the registration to be active", active, check=planes.check)
    return registration


async def granting(planes: RealPlanes, client: PlaneClient, grant: JsonObject) -> None:
    """Creates a grant and waits until it counts: an earlier claim would be denied for good."""
    path = await client.path_of(await client.create(grant))

    async def active() -> bool:
        return has_condition(await client.get(path), "Active")

    await until("the grant to be active", active, check=planes.check)


async def kinds_of(client: PlaneClient) -> set[str]:
    listed = await client.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    return {string_at(one, "metadata", "name") for one in objects_at(listed, "items")}


@pytest_asyncio.fixture
async def project(real_planes: RealPlanes) -> AsyncIterator[str]:
    name = f"made-{uuid.uuid4().hex[:6]}"
    assert await make(real_planes, name) <= READY_WITHIN
    yield name
    async with real_planes.milo.client() as root:
        if await root.find(f"{PROJECTS}/{name}"):
            await delete(real_planes, name)


async def test_project_made_at_run_time_has_a_plane_of_its_own(
    real_planes: RealPlanes, project: str
) -> None:
    await fill(real_planes, project, "mine")
    async with real_planes.milo.client("p1") as other:
        await touch(other, CONFIG_MAPS)
        assert await other.find(f"{CONFIG_MAPS}/mine") is None
    assert f"milo-{project}" in real_planes.contexts
    output = await real_planes.kubectl("--context", f"milo-{project}", "get", "configmap", "mine")
    assert "mine" in output


async def test_new_project_holds_what_was_applied_at_the_root(
    real_planes: RealPlanes, project: str
) -> None:
    async with real_planes.plane(project).client() as client, real_planes.milo.client() as root:
        at_root, in_project = await kinds_of(root), await kinds_of(client)
    assert at_root <= in_project
    assert "workloads.compute.datumapis.com" in in_project


async def test_deleted_project_is_purged_and_its_process_ended(real_planes: RealPlanes) -> None:
    name = f"short-{uuid.uuid4().hex[:6]}"
    await make(real_planes, name)
    names = {process.name for process in real_planes.processes}
    assert f"{name}.kube-apiserver" in names
    await fill(real_planes, name, "left")
    await delete(real_planes, name)
    await ended(real_planes, name)
    async with real_planes.milo.client(name) as client:
        # As for every id that does not exist.
        assert objects_at(await touch(client, "/api/v1/configmaps"), "items") == []
        await touch(client, "/api/v1/namespaces")
        assert await client.find("/api/v1/namespaces/default") is None


async def test_project_of_the_same_name_begins_anew(real_planes: RealPlanes) -> None:
    name = f"again-{uuid.uuid4().hex[:6]}"
    await make(real_planes, name)
    await fill(real_planes, name, "old")
    await delete(real_planes, name)
    await make(real_planes, name)
    async with real_planes.milo.client(name) as client:
        await touch(client, CONFIG_MAPS)
        assert await client.find(f"{CONFIG_MAPS}/old") is None
    await delete(real_planes, name)


async def test_controllers_that_were_away_find_what_was_deleted_meanwhile(
    real_planes: RealPlanes, project: str
) -> None:
    controllers = real_planes.milo.controllers
    await controllers.crash()
    async with real_planes.milo.client() as root:
        await root.delete(f"{PROJECTS}/{project}")
    await controllers.up()
    async with real_planes.milo.client() as root:

        async def gone() -> bool:
            return await root.find(f"{PROJECTS}/{project}") is None

        await until("the project to go", gone, check=real_planes.check)
    await ended(real_planes, project)


async def test_grant_and_claim_are_decided_on_a_real_plane(
    real_planes: RealPlanes, project: str
) -> None:
    kind = f"example.com/{uuid.uuid4().hex[:6]}"
    async with real_planes.milo.client() as root:
        registration = await registered(real_planes, root, kind)
        with pytest.raises(ApiError) as taken:
            await root.apply({**registration, "metadata": {"name": "second"}})
        assert (taken.value.code, taken.value.reason) == (403, "Forbidden")
    async with real_planes.milo.client(project) as client:
        for plural in ("resourcegrants", "resourceclaims"):
            await touch(client, f"{QUOTA}/{plural}")
        await granting(real_planes, client, a_grant(project, "grant", kind, 1))
        # An apply that creates is admitted and evaluated as any create.
        path = await client.path_of(await client.apply(a_claim(project, "claim", kind)))

        async def granted() -> bool:
            return has_condition(await client.get(path), "Granted")

        await until("the claim to be granted", granted, check=real_planes.check)
        with pytest.raises(ApiError) as refused:
            await client.apply(a_claim(project, "other", "example.com/unknown"))
        assert refused.value.code == 403
        assert '"other" is forbidden: ' in string_at(refused.value.status, "message")


async def test_claims_wait_while_the_controllers_are_frozen(
    real_planes: RealPlanes, project: str
) -> None:
    kind = f"example.com/{uuid.uuid4().hex[:6]}"
    async with (
        real_planes.milo.client() as root,
        real_planes.milo.client(project) as client,
    ):
        await registered(real_planes, root, kind)
        await touch(client, f"{QUOTA}/resourceclaims")
        real_planes.milo.controllers.freeze()
        try:
            path = await client.path_of(await client.create(a_claim(project, "claim", kind)))
            await asyncio.sleep(1)
            (waiting,) = objects_at(await client.get(path), "status", "conditions")
            assert string_at(waiting, "reason") == "PendingEvaluation"
        finally:
            real_planes.milo.controllers.thaw()

        async def decided() -> bool:
            (condition,) = objects_at(await client.get(path), "status", "conditions")
            return string_at(condition, "reason") == "QuotaExceeded"

        await until("the claim to be decided", decided, check=real_planes.check)
