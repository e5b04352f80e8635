"""What a Milo owes in a suspended project: the simulated one, and the gateway before real servers.

The facts are those of Milo v0.32.5 (suspension.md 1). The same bodies run on both.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final, Protocol

import pytest
import pytest_asyncio

from compute_sim_planes.api_server.authz.identity import authenticated
from compute_sim_planes.api_server.testing import ServerAddress
from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.conditions import find_condition
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at
from compute_sim_planes.milo.kinds import DEFAULT_NAMESPACE, NAMESPACES, PROJECTS, SUSPENSIONS
from compute_sim_planes.milo.paths import project_path
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.milo.testing import a_suspension
from compute_sim_planes.time.sources import SeededIdentities, SystemClock

MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS: Final = Resource("", "v1", "events", "Event")
RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = Resource(RBAC, "v1", "clusterroles", "ClusterRole", is_namespaced=False)
BINDINGS: Final = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False)
REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False
)
WHY: Final = 'project "{}" is suspended ({}) and cannot accept new updates while suspended'
PATIENCE: Final = 30.0
FINALIZER: Final = "contract.example.com/held"


class MiloServers(Protocol):
    """A real Milo: the addresses of its administrator and of a user without rights."""

    @property
    def admin(self) -> ServerAddress: ...
    @property
    def user(self) -> ServerAddress: ...
    @property
    def user_name(self) -> str: ...
    @property
    def project(self) -> str: ...


@dataclass
class SuspendableProject:
    """A project, its root, and a user who may write everything in it."""

    name: str
    root: Client
    admin: Client
    user: Client
    run: str = field(default_factory=lambda: f"t{secrets.token_hex(4)}")

    def a_map(self, name: str, *finalizers: str) -> JsonObject:
        metadata: JsonObject = {"name": f"{self.run}-{name}", "namespace": DEFAULT_NAMESPACE}
        if finalizers:
            metadata["finalizers"] = [*finalizers]
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

    async def suspend(self, *reasons: str) -> None:
        for reason in reasons or ("Billing",):
            order = a_suspension(self.name, f"{self.run}-{reason.lower()}", reason)
            await self.root.create(SUSPENSIONS, order)
        await eventually(self._has_orders(len(reasons) or 1))
        await eventually(self._refuses)

    async def resume(self) -> None:
        for order in (await self.root.list(SUSPENSIONS)).items:
            if string_at(order, "spec", "projectRef", "name") == self.name:
                await self.root.delete(SUSPENSIONS, string_at(order, "metadata", "name"))
        if find_condition(await self.read_project(), "Suspended") is not None:
            await eventually(self._is("False"))
            await eventually(self.accepts)

    async def read_project(self) -> JsonObject:
        return await self.root.get(PROJECTS, self.name) or {}

    def _has_orders(self, number: int) -> Callable[[], Awaitable[bool]]:
        """The controller counts orders one by one: the first suspends, the next are added."""

        async def has_orders() -> bool:
            orders = objects_at(await self.read_project(), "status", "suspensions")
            return len(orders) == number and await self._is("True")()

        return has_orders

    def _is(self, status: str) -> Callable[[], Awaitable[bool]]:
        async def has_status() -> bool:
            condition = find_condition(await self.read_project(), "Suspended")
            return string_at(condition, "status") == status

        return has_status

    async def _refuses(self) -> bool:
        return not await self.accepts()

    async def accepts(self) -> bool:
        """Milo's admission reads a cache, which may be behind the Project."""
        probe = self.a_map(f"probe-{secrets.token_hex(3)}")
        try:
            await self.user.create(MAPS, probe)
        except ApiError:
            return False
        await self.delete(probe)
        return True

    async def delete(self, document: JsonObject) -> None:
        name = string_at(document, "metadata", "name")
        await self.user.delete(MAPS, name, namespace=DEFAULT_NAMESPACE)


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while not await holds():
        assert loop.time() < deadline, "it did not come true in time"
        await asyncio.sleep(0.02)


async def simulated_project(stack: AsyncExitStack) -> SuspendableProject:
    milo = Milo(MiloParts(SystemClock(), SeededIdentities(1)))
    stack.push_async_callback(milo.close)
    await milo.start()
    await milo.add_project("acme")
    user = authenticated("writer")
    await allow(milo.client(), "writer")
    return SuspendableProject(
        "acme", milo.client(), milo.client("acme"), milo.client("acme", user=user)
    )


async def real_project(stack: AsyncExitStack, servers: MiloServers) -> SuspendableProject:
    def client(address: ServerAddress, prefix: str = "") -> Client:
        assert address.authority is not None
        trusted = ssl.create_default_context(cadata=address.authority.decode())
        transport = HttpTransport(address.url, token=address.token, context=trusted)
        stack.push_async_callback(transport.close)
        return Client(transport, manager="contract", prefix=prefix)

    prefix, root = project_path(servers.project), client(servers.admin)
    await allow(root, servers.user_name)
    stack.push_async_callback(root.delete, ROLES, "contract-writer")
    stack.push_async_callback(root.delete, BINDINGS, "contract-writer")
    return SuspendableProject(
        servers.project, root, client(servers.admin, prefix), client(servers.user, prefix)
    )


async def allow(root: Client, user: str) -> None:
    rules: JsonObject = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    name: JsonObject = {"name": "contract-writer"}
    await root.apply(ROLES, {"metadata": name, "rules": [rules]})
    reference: JsonObject = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "contract-writer"}
    subject: JsonObject = {"apiGroup": RBAC, "kind": "User", "name": user}
    await root.apply(BINDINGS, {"metadata": {**name}, "roleRef": reference, "subjects": [subject]})


@pytest.fixture(scope="session")
def real_milo_servers_address(request: pytest.FixtureRequest) -> MiloServers | None:
    """Not async: real planes start outside of any test's loop."""
    if request.config.getoption("--planes") != "real":
        return None
    servers: MiloServers = request.getfixturevalue("real_milo_servers")
    return servers


@pytest_asyncio.fixture
async def project(
    real_milo_servers_address: MiloServers | None,
) -> AsyncIterator[SuspendableProject]:
    async with AsyncExitStack() as stack:
        servers = real_milo_servers_address
        made = (
            await simulated_project(stack)
            if servers is None
            else await real_project(stack, servers)
        )
        # Rights reach a project a moment later.
        await eventually(made.accepts)
        stack.push_async_callback(made.resume)
        yield made


def expect_suspended(refused: pytest.ExceptionInfo[ApiError], why: str, head: str) -> None:
    error = refused.value
    assert (error.status, error.reason) == (403, "Forbidden")
    assert error.message == f"{head} is forbidden: {why}"
    assert objects_at(error.details, "causes") == [{"reason": "ProjectSuspended", "message": why}]


@pytest.mark.spec("SU-01")
async def test_every_create_and_update_is_refused_with_the_cause(
    project: SuspendableProject,
) -> None:
    existing = await project.user.create(MAPS, project.a_map("kept"))
    name = string_at(existing, "metadata", "name")
    await project.suspend("Fraud", "Billing")
    why = WHY.format(project.name, "Billing, Fraud")
    new = project.a_map("new")
    with pytest.raises(ApiError) as refused:
        await project.user.create(MAPS, new)
    expect_suspended(refused, why, f'configmaps "{string_at(new, "metadata", "name")}"')
    change: JsonObject = {"data": {"a": "b"}}
    with pytest.raises(ApiError) as refused:
        await project.user.patch(MAPS, name, change, namespace=DEFAULT_NAMESPACE)
    expect_suspended(refused, why, f'configmaps "{name}"')
    with pytest.raises(ApiError) as refused:
        await project.user.update(MAPS, {**existing, **change})
    expect_suspended(refused, why, f'configmaps "{name}"')


@pytest.mark.spec("SU-01")
async def test_status_and_events_are_refused_too(project: SuspendableProject) -> None:
    await project.suspend()
    why = WHY.format(project.name, "Billing")
    event: JsonObject = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{project.run}.1", "namespace": DEFAULT_NAMESPACE},
        "involvedObject": {"kind": "ConfigMap", "namespace": DEFAULT_NAMESPACE, "name": "x"},
        "reason": "Tried",
        "type": "Normal",
    }
    with pytest.raises(ApiError) as refused:
        await project.user.create(EVENTS, event)
    expect_suspended(refused, why, f'events "{project.run}.1"')
    namespace = await project.user.get(NAMESPACES, DEFAULT_NAMESPACE) or {}
    labels = {**object_at(namespace, "metadata", "labels"), "contract.example.com/run": "x"}
    metadata: JsonObject = {**object_at(namespace, "metadata"), "labels": labels}
    with pytest.raises(ApiError) as refused:
        await project.user.update_status(NAMESPACES, {**namespace, "metadata": metadata})
    expect_suspended(refused, why, f'namespaces "{DEFAULT_NAMESPACE}"')


async def test_reads_and_deletes_pass_and_a_terminating_object_may_be_updated(
    project: SuspendableProject,
) -> None:
    held, plain = project.a_map("held", FINALIZER), project.a_map("plain")
    for document in (held, plain):
        await project.user.create(MAPS, document)
    await project.suspend()
    for document in (held, plain):
        await project.delete(document)
    name = string_at(held, "metadata", "name")
    going = await project.user.get(MAPS, name, DEFAULT_NAMESPACE)
    assert string_at(going or {}, "metadata", "deletionTimestamp")
    patch: JsonObject = {"metadata": {"finalizers": None}}
    await project.user.patch(MAPS, name, patch, namespace=DEFAULT_NAMESPACE)
    assert await project.user.get(MAPS, name, DEFAULT_NAMESPACE) is None


async def test_masters_and_access_reviews_are_exempt(project: SuspendableProject) -> None:
    await project.suspend()
    document = project.a_map("by-admin")
    await project.admin.create(MAPS, document)
    await project.delete(document)
    spec: JsonObject = {
        "user": "writer",
        "resourceAttributes": {"verb": "get", "resource": "configmaps"},
    }
    review: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": spec,
    }
    assert object_at(await project.user.create(REVIEWS, review), "status")


async def test_a_refusal_for_another_reason_comes_first(project: SuspendableProject) -> None:
    await project.suspend()
    invalid = project.a_map("UPPER")
    with pytest.raises(ApiError) as refused:
        await project.user.create(MAPS, invalid)
    assert refused.value.status == 422


@pytest.mark.spec("SU-01")
async def test_several_orders_may_stand_and_the_last_to_go_resumes(
    project: SuspendableProject,
) -> None:
    await project.suspend("Abuse", "Billing")
    condition = find_condition(await project.read_project(), "Suspended") or {}
    orders = f"{project.run}-abuse, {project.run}-billing"
    assert string_at(condition, "message") == (
        f"Project is suspended due to active suspensions: {orders}"
    )
    reasons = [
        string_at(one, "reason")
        for one in objects_at(await project.read_project(), "status", "suspensions")
    ]
    assert reasons == ["Abuse", "Billing"]
    lifted: JsonObject = {"status": {"phase": "Lifted"}}
    await project.root.patch(SUSPENSIONS, f"{project.run}-abuse", lifted, subresource="status")
    with pytest.raises(ApiError):
        await project.user.create(MAPS, project.a_map("still"))
    await project.resume()
    document = project.a_map("after")
    await project.user.create(MAPS, document)
    await project.delete(document)
