"""The policies that separate cells, as `deploy/` has them.

One table of requests tests them on both servers; further tests use a cell with the permissions that
ship.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
import yaml
from cell_requests import CLAIMS, DFW, INSTANCES, NOBODY, OURS, TABLE, Guard, Labels, Row

from compute_api_types import labels
from compute_api_types.testing import an_instance
from compute_sim_planes.api_server.kinds.crd_documents import is_established
from compute_sim_planes.api_server.manifests import read_manifests
from compute_sim_planes.api_server.testing import Api, ApiResponse, eventually, version_of
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, object_at, string_at

DEPLOY: Final = Path(__file__).parents[4] / "deploy"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLACES: Final = {
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "CustomResourceDefinition": CRDS,
    "ValidatingAdmissionPolicy": f"{ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}/validatingadmissionpolicybindings",
}
COLLECTIONS: Final = {
    INSTANCES.kind: ("/apis/compute.datumapis.com/v1alpha", "instances"),
    CLAIMS.kind: ("/apis/quota.miloapis.com/v1alpha1", "resourceclaims"),
}
EVERYTHING: Final = ["get", "list", "create", "update", "patch", "delete", "deletecollection"]
MANAGER: Final = "cell-policies"
# Not in the table: on a shared server the table's users keep permissions that do not ship.
CELL: Final = "lax-1"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A server with the policies in force, a project namespace, and another namespace."""

    api: Api
    project: str
    elsewhere: str

    def collection(self, guard: Guard, *, in_project: bool = True) -> str:
        root, plural = COLLECTIONS[guard.kind]
        namespace = self.project if in_project else self.elsewhere
        return f"{root}/namespaces/{namespace}/{plural}"


async def ensure(api: Api, document: JsonObject) -> None:
    kind, name = string_at(document, "kind"), string_at(document, "metadata", "name")
    target = f"{PLACES[kind]}/{name}"
    (await api.apply(target, document, MANAGER, force="true")).expect(200, 201)
    if kind == "CustomResourceDefinition":
        await eventually(lambda: api.get(target), lambda response: is_established(response.body))


def shipped() -> list[JsonObject]:
    """Our kinds, Milo's claims, and the policies as `deploy/` has them."""
    claims = [
        crd for crd in load_crds("milo") if "resourceclaims" in string_at(crd, "metadata", "name")
    ]
    admission = [f"{plane}/admission" for plane in ("hub", "milo")]
    return [
        *read_manifests(DEPLOY / "crds"),
        *claims,
        *(document for folder in admission for document in read_manifests(DEPLOY / folder)),
        *city_policy("zrh-1", "zrh"),
    ]


def city_policy(cell: str, city: str) -> list[JsonObject]:
    """The policy that a platform team derives from the template, for a city of this test."""
    text = (DEPLOY / "milo/cells/example/city-claims.yaml").read_text("utf-8")
    filled = text.replace("example", cell).replace("CITY", city)
    return [*yaml.safe_load_all(filled)]


def full_rights() -> list[JsonObject]:
    """Every permission on the kinds for every user of the table: only the policies refuse."""
    rules: list[JsonObject] = [
        {
            "apiGroups": ["compute.datumapis.com"],
            "resources": ["instances", "instances/status"],
            "verbs": [*EVERYTHING],
        },
        {
            "apiGroups": ["quota.miloapis.com"],
            "resources": ["resourceclaims", "resourceclaims/status"],
            "verbs": [*EVERYTHING],
        },
    ]
    users = sorted({row.user for row in TABLE})
    return [
        a_cluster_role("cell-policies-everything", rules),
        a_cluster_role_binding("cell-policies-everything", users),
    ]


def a_cluster_role(name: str, rules: list[JsonObject]) -> JsonObject:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [*rules],
    }


def a_cluster_role_binding(role: str, users: list[str]) -> JsonObject:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user} for user in users],
    }


def an_object(
    guard: Guard,
    carried: Labels,
    name: str = "",
    asks: tuple[str, ...] = (OURS,),
    full: str = "",
) -> JsonObject:
    metadata: JsonObject = {"name": name or guard.name, "labels": {**carried}}
    if full:
        metadata["annotations"] = {labels.WORKLOAD_DEPLOYMENT_NAME: full}
    if guard is CLAIMS:
        project: JsonObject = {
            "apiGroup": "resourcemanager.miloapis.com",
            "kind": "Project",
            "name": "p1",
        }
        return {
            "apiVersion": "quota.miloapis.com/v1alpha1",
            "kind": guard.kind,
            "metadata": metadata,
            "spec": {
                "consumerRef": project,
                "resourceRef": project,
                "requests": [{"resourceType": one, "amount": 1} for one in asks],
            },
        }
    dumped: JsonObject = an_instance().model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**{key: dumped[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata}


@asynccontextmanager
async def namespaces(api: Api) -> AsyncGenerator[Guarded, None]:
    """Two namespaces of the test's own."""
    unique = uuid.uuid4()
    made = Guarded(api, f"ns-{unique}", f"elsewhere-{unique}")
    for name in (made.project, made.elsewhere):
        desired: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        (await api.post("/api/v1/namespaces", desired)).expect(201)
    yield made
    for name in (made.project, made.elsewhere):
        await api.delete(f"/api/v1/namespaces/{name}")


@pytest_asyncio.fixture
async def server(api: Api) -> AsyncIterator[Guarded]:
    """The server with the shipped manifests and two namespaces, without permissions yet."""
    for document in shipped():
        await ensure(api, document)
    async with namespaces(api) as made:
        yield made


@pytest_asyncio.fixture
async def guarded(server: Guarded) -> Guarded:
    """The same, with full permissions for the table's users, and with both policies in force."""
    for document in full_rights():
        await ensure(server.api, document)
    for guard in (INSTANCES, CLAIMS):
        await await_policy(server, guard, NOBODY)
    return server


async def await_policy(server: Guarded, guard: Guard, user: str) -> None:
    """On a real server permissions and policies take up to a second to be in force."""
    as_user = server.api.impersonating(user)
    path = server.collection(guard)
    wrong = an_object(guard, {guard.label: "nobody-1"}, "probe")
    await eventually(
        lambda: as_user.post(path, wrong, dryRun="All"),
        lambda response: guard.policy in response.message,
    )


async def send(row: Row, as_user: Api, path: str, existing: JsonObject) -> ApiResponse:
    """Send the request of a row."""
    target = f"{path}/{row.name or row.guard.name}"
    desired = an_object(row.guard, row.desired or {}, row.name, row.desired_requests, row.full)
    carried: JsonObject = {**(row.desired or {})}
    metadata: JsonObject = {**object_at(existing, "metadata"), "labels": carried}
    requests: dict[str, Callable[[], Awaitable[ApiResponse]]] = {
        "create": lambda: as_user.post(path, desired),
        "apply": lambda: as_user.apply(target, desired, MANAGER, force="true"),
        "replace": lambda: as_user.put(target, {**existing, "metadata": metadata}),
        "patch": lambda: as_user.merge(target, {"metadata": {"labels": carried}}),
        "status": lambda: as_user.put(f"{target}/status", {**existing, "metadata": metadata}),
        "delete": lambda: as_user.delete(target),
        "delete_all": lambda: as_user.delete(path),
    }
    return await requests[row.verb]()


async def outcome_of(api: Api, row: Row) -> tuple[int, str]:
    """Status and message for a row's request, in namespaces of its own."""
    async with namespaces(api) as place:
        path = place.collection(row.guard, in_project=row.in_project)
        existing: JsonObject = {}
        if row.existing is not None:
            stored = an_object(row.guard, row.existing, row.name, row.existing_requests)
            existing = (await api.post(path, stored)).expect(201)
        reply = await send(row, api.impersonating(row.user), path, existing)
        after = (await api.get(f"{path}/{row.name or row.guard.name}")).body
    _, _, denial = reply.message.partition(" denied request: ")
    if denial and version_of(after) != version_of(existing):
        denial = "refused, and done all the same"
    return reply.status, denial


def expected(row: Row) -> tuple[int, str]:
    if row.refused:
        return 403, row.refused
    return 201 if row.existing is None else 200, ""


@pytest.mark.spec("AT-06")
@pytest.mark.fault("G3")
@pytest.mark.spec("AT-04")
@pytest.mark.spec("AT-05")
@pytest.mark.parametrize("guard", [INSTANCES, CLAIMS], ids=lambda guard: guard.policy)
async def test_every_request_of_the_table_gets_its_answer(guarded: Guarded, guard: Guard) -> None:
    rows = [row for row in TABLE if row.guard is guard]
    answered = {row.title: await outcome_of(guarded.api, row) for row in rows}
    assert len(answered) == len(rows), "each row has a title of its own"
    assert answered == {row.title: expected(row) for row in rows}


@pytest.mark.parametrize("guard", [INSTANCES, CLAIMS], ids=lambda guard: guard.policy)
async def test_refusal_names_the_policy_and_is_a_plain_403(guarded: Guarded, guard: Guard) -> None:
    wrong = an_object(guard, {guard.label: "ord-1"})
    reply = await guarded.api.impersonating(DFW).post(guarded.collection(guard), wrong)
    assert (reply.status, reply.reason) == (403, "Forbidden")
    by = f"ValidatingAdmissionPolicy '{guard.policy}' with binding '{guard.policy}' denied request"
    assert reply.message.endswith(f"{by}: {guard.not_own}")


def cell_binding(cell: str) -> JsonObject:
    """The binding that a platform team derives from the template: a copy with the name replaced."""
    text = (DEPLOY / "hub/cells/example/binding.yaml").read_text("utf-8")
    document: JsonObject = yaml.safe_load(text.replace("example", cell))
    return document


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request of a compromised cell to the hub, and its status code."""

    title: str
    method: str
    path: str
    code: int
    cell: str = ""  # the cell in the label of the sent Instance; empty where none is sent


ATTEMPTS: Final = (
    Attempt("own copy", "POST", "{ns}/instances", 201, CELL),
    Attempt("read copies", "GET", "{ns}/instances", 200),
    Attempt("delete own copy", "DELETE", "{ns}/instances/own-0", 200),
    Attempt("another's copy", "POST", "{ns}/instances", 403, "ord-1"),
    Attempt("rewrite another's copy", "PATCH", "{ns}/instances/theirs-0", 403, CELL),
    Attempt("delete another's copy", "DELETE", "{ns}/instances/theirs-0", 403),
    Attempt("status of another's copy", "PUT", "{ns}/instances/theirs-0/status", 403, CELL),
    Attempt("delete every copy", "DELETE", "{ns}/instances", 403),
    Attempt("read deployments", "GET", "{ns}/workloaddeployments", 403),
    Attempt("write a deployment", "PATCH", "{ns}/workloaddeployments/one", 403, CELL),
    Attempt("delete a deployment", "DELETE", "{ns}/workloaddeployments/one", 403),
    Attempt("read a namespace", "GET", "/api/v1/namespaces/{project}", 200),
    Attempt("list namespaces", "GET", "/api/v1/namespaces", 403),
    Attempt("delete a namespace", "DELETE", "/api/v1/namespaces/{project}", 403),
    Attempt("read secrets", "GET", "/api/v1/namespaces/{project}/secrets", 403),
    Attempt("read roles", "GET", f"{RBAC}/clusterroles", 403),
    Attempt("read policies", "GET", f"{ADMISSION}/validatingadmissionpolicies", 403),
)


@pytest.mark.spec("S18")
@pytest.mark.fault("G3")
async def test_cell_with_the_shipped_role_and_policy_touches_its_own_copies_alone(
    server: Guarded,
) -> None:
    api = server.api
    for document in (*read_manifests(DEPLOY / "hub/rbac/cell.yaml"), cell_binding(CELL)):
        await ensure(api, document)
    await await_policy(server, INSTANCES, f"compute:cell:{CELL}")
    collection = server.collection(INSTANCES)
    for name, cell in (("own-0", CELL), ("theirs-0", "ord-1")):
        made = an_object(INSTANCES, {INSTANCES.label: cell}, name)
        (await api.post(collection, made)).expect(201)
    answered = {attempt.title: await try_(api, attempt, server) for attempt in ATTEMPTS}
    assert answered == {attempt.title: attempt.code for attempt in ATTEMPTS}
    left = (await api.get(f"{collection}/theirs-0")).expect(200)
    assert object_at(left, "metadata", "labels") == {INSTANCES.label: "ord-1"}


async def try_(api: Api, attempt: Attempt, server: Guarded) -> int:
    root, _ = COLLECTIONS[INSTANCES.kind]
    place = f"{root}/namespaces/{server.project}"
    path = attempt.path.format(ns=place, project=server.project)
    body: JsonObject | None = None
    if attempt.cell:
        is_new = attempt.method == "POST"
        name = "new-0" if is_new else path.removesuffix("/status").rsplit("/", 1)[1]
        carried = {INSTANCES.label: attempt.cell, labels.WORKLOAD_DEPLOYMENT_NAME: "new"}
        body = an_object(INSTANCES, carried, name)
        # A replacement must name the version it replaces.
        stored = {} if is_new else object_at((await api.get(f"{place}/instances/{name}")).body)
        metadata: JsonObject = {**object_at(body, "metadata")}
        if version := version_of(stored):
            metadata["resourceVersion"] = version
        body["metadata"] = metadata
    kind = "application/merge-patch+json" if attempt.method == "PATCH" else "application/json"
    as_cell = api.impersonating(f"compute:cell:{CELL}")
    return (await as_cell.send(attempt.method, path, body, kind)).status
