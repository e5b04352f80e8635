"""The process in real time: a real command line, TLS, probes, the Lease, and a graceful stop."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import orjson
import pytest
import pytest_asyncio
from cell_builders.documents import NS, a_deployment_document, a_namespace_document

from compute_api_types.crd import derive_crds
from compute_operator_kit.config.settings import API_VERSION
from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.http.server import HttpServer, route_all
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.certificates import make_server_files
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.kubeconfig import Context, write_kubeconfig

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
INSTANCES = Resource("compute.datumapis.com", "v1alpha", "instances", "Instance")
DEPLOYMENTS = Resource(
    "compute.datumapis.com", "v1alpha", "workloaddeployments", "WorkloadDeployment"
)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")


@dataclass(frozen=True, slots=True)
class Cell:
    """A served plane, and the environment that leads to it."""

    client: Client
    kubeconfig: Path


@pytest_asyncio.fixture
async def cell(tmp_path: Path) -> AsyncIterator[Cell]:
    """A cell with our kinds and no others: neither networking nor quota."""
    files = make_server_files(tmp_path)
    token = secrets.token_urlsafe(8)
    plane = Plane("cell", PlaneParts(tokens=Tokens({token: ADMIN})))
    server = HttpServer(route_all(plane), tls=files.context())
    await server.start()
    kubeconfig = tmp_path / "kubeconfig"
    authority = files.authority.read_bytes()
    write_kubeconfig(kubeconfig, [Context("cell", server.url, token, authority)])
    crds = [orjson.loads(orjson.dumps(crd)) for crd in derive_crds()]
    await apply_manifests(plane.connect(), crds)
    client = Client(plane.connect(), manager="test")
    system: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "compute-system"},
    }
    await client.create(NAMESPACES, system)
    try:
        yield Cell(client, kubeconfig)
    finally:
        await server.close()
        await plane.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def ask(url: str) -> tuple[int, str]:
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, await answer.text()
    except aiohttp.ClientError:
        return 0, ""


def start(cell: Cell, folder: Path, health: int, metrics: int) -> subprocess.Popen[bytes]:
    config = folder / "config.yaml"
    config.write_text(
        f"apiVersion: {API_VERSION}\nkind: CellOperator\n"
        "cell: {name: dfw-1}\n"
        # A hub without a server: the cell starts and works without it.
        f"federation: {{mode: karmada, kubeconfigPath: {folder / 'hub'}}}\n"
        f"quota: {{mode: enforce, kubeconfigPath: {folder / 'hub'}}}\n"
        f'metricsServer: {{bindAddress: "127.0.0.1:{metrics}", secureServing: false}}\n'
        f'health: {{bindAddress: "127.0.0.1:{health}"}}\n'
    )
    write_kubeconfig(folder / "hub", [Context("hub", f"https://127.0.0.1:{free_port()}", "none")])
    environ = {"KUBECONFIG": str(cell.kubeconfig), "POD_NAMESPACE": "compute-system"}
    command = [sys.executable, "-m", "compute_cell_operator", "--server-config", str(config)]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, env={**os.environ, **environ}, stderr=log)


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    while not await is_so():  # noqa: ASYNC110 - another process sets no event of ours
        await asyncio.sleep(0.1)


async def is_ready(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None, "ended before it was ready"
    return (await ask(f"http://127.0.0.1:{port}/readyz"))[0] == 200


async def has_ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


async def exists(cell: Cell, name: str) -> bool:
    return await cell.client.get(INSTANCES, name, NS) is not None


async def scaled(cell: Cell) -> list[JsonObject]:
    """Events of that reason; there may be others beside them."""
    events = (await cell.client.list(EVENTS)).items
    return [one for one in events if string_at(one, "reason") == "Scaled"]


async def has_scaled(cell: Cell) -> bool:
    return bool(await scaled(cell))


@pytest.mark.spec("C-36", "C-87")
async def test_the_process_starts_alone_works_and_stops_cleanly(cell: Cell, tmp_path: Path) -> None:
    health, metrics = free_port(), free_port()
    process = start(cell, tmp_path, health, metrics)
    try:
        async with asyncio.timeout(30):
            await until(lambda: is_ready(process, health))
            assert (await ask(f"http://127.0.0.1:{health}/healthz"))[0] == 200
            status, text = await ask(f"http://127.0.0.1:{metrics}/metrics")
            assert status == 200
            assert 'compute_plane_up{plane="home"} 1.0' in text
            assert "compute_quota_enforcement_enabled 1.0" in text
            assert "single" not in text
            await cell.client.create(NAMESPACES, a_namespace_document())
            await cell.client.create(DEPLOYMENTS, a_deployment_document("web", 1))
            await until(lambda: exists(cell, "web-0"))
            await until(lambda: has_scaled(cell))
        (event,) = await scaled(cell)
        assert string_at(event, "reportingComponent") == "workloaddeployment-controller"
        lease = await cell.client.get(LEASES, "compute-cell-operator", "compute-system")
        assert string_at(lease, "spec", "holderIdentity")
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(15):
            await until(lambda: has_ended(process))
    assert process.returncode == 0, (tmp_path / "log").read_text()
    lease = await cell.client.get(LEASES, "compute-cell-operator", "compute-system")
    assert string_at(lease, "spec", "holderIdentity") == ""


def test_a_file_that_is_missing_is_named_and_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        f"apiVersion: {API_VERSION}\nkind: CellOperator\ncell: {{name: dfw-1}}\n"
        "federation: {mode: karmada, kubeconfigPath: /nowhere/hub}\n"
        "quota: {mode: enforce, kubeconfigPath: /nowhere/quota}\n"
        'metricsServer: {bindAddress: "0"}\nhealth: {bindAddress: "0"}\n'
    )
    command = [sys.executable, "-m", "compute_cell_operator", "--server-config", str(config)]
    ended = subprocess.run(command, check=False, capture_output=True, timeout=30)
    assert ended.returncode == 2
    assert b"/nowhere/hub" in ended.stderr
    assert b"/nowhere/quota" in ended.stderr
