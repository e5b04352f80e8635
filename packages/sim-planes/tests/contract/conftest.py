"""The server under test: the simulated one, or with `--planes real` a kube-apiserver.

The simulated server is new for every test; a real one is shared, so tests use their own namespace
and names.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from compute_sim_planes.api_server.admission.webhook_clients import HttpWebhooks
from compute_sim_planes.api_server.authz.identity import MASTERS, Tokens, authenticated
from compute_sim_planes.api_server.http.server import HttpServer, route_all
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.testing import Api, ServerAddress, connect, eventually
from compute_sim_planes.certificates import ServerFiles, make_server_files
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.time.sources import SeededIdentities

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="session")
def server_files(tmp_path_factory: pytest.TempPathFactory) -> ServerFiles:
    """A certificate for the loopback interface."""
    return make_server_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A CA that signed no served certificate."""
    return make_server_files(tmp_path_factory.mktemp("other-tls")).authority.read_bytes()


@pytest.fixture(scope="session")
def real_server(request: pytest.FixtureRequest) -> ServerAddress | None:
    """The real server, with `--planes real`. Not async: it starts outside of any test's loop."""
    if request.config.getoption("--planes") != "real":
        return None
    address: ServerAddress = request.getfixturevalue("real_api_server")
    return address


@pytest_asyncio.fixture
async def api_server(
    real_server: ServerAddress | None, server_files: ServerFiles
) -> AsyncIterator[ServerAddress]:
    if real_server is not None:
        yield real_server
        return
    token = secrets.token_urlsafe(16)
    plane = Plane(
        "contract",
        PlaneParts(
            tokens=Tokens({token: authenticated("contract-admin", MASTERS)}),
            webhooks=HttpWebhooks(),
            identities=SeededIdentities(int.from_bytes(secrets.token_bytes(8))),
        ),
    )
    server = HttpServer(route_all(plane), tls=server_files.context())
    await server.start()
    try:
        yield ServerAddress(server.url, token, server_files.authority.read_bytes())
    finally:
        await plane.close()
        await server.close()


@pytest_asyncio.fixture
async def api(api_server: ServerAddress) -> AsyncIterator[Api]:
    async with connect(api_server) as connected:
        yield connected


@pytest_asyncio.fixture
async def namespace(api: Api) -> AsyncIterator[str]:
    desired: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"generateName": "contract-"},
    }
    made = (await api.post("/api/v1/namespaces", desired)).expect(201)
    name = string_at(made, "metadata", "name")
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")


@pytest_asyncio.fixture
async def widgets(api: Api, namespace: str) -> str:
    """The path of a collection of a custom kind, in the test's own namespace."""
    reply = await api.post(CRDS, widget_definition())
    reply.expect(201, 409)
    path = f"/apis/contract.example.com/v1/namespaces/{namespace}/widgets"
    await eventually(lambda: api.get(path), lambda response: response.status == 200)
    return path


def widget_definition() -> JsonObject:
    port: JsonObject = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "port": {"type": "integer", "format": "int32"}},
    }
    spec: JsonObject = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 100},
            "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
            "code": {"type": "string", "pattern": "^[A-Z]{3}$", "maxLength": 3},
            "quantity": {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": True,
            },
            "ports": {
                "type": "array",
                "maxItems": 3,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": port,
            },
            "tags": {"type": "array", "items": {"type": "string"}},
            "limits": {"type": "object", "additionalProperties": {"type": "string"}},
            "settings": {
                "type": "object",
                "properties": {"mode": {"type": "string", "default": "auto"}},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    status: JsonObject = {
        "type": "object",
        "default": {"phase": "Pending", "ready": 0},
        "properties": {
            "phase": {"type": "string"},
            "ready": {"type": "integer", "default": 0},
            "conditions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type", "status"],
                    "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                },
            },
        },
    }
    schema: JsonObject = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": spec, "status": status},
    }
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.contract.example.com"},
        "spec": {
            "group": "contract.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wdgt"]},
            "versions": [version],
        },
    }
